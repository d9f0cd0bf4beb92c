//! Processes and servers killed at random moments: acknowledged calls are durable, and no job is lost or done twice.
//!
//! The killed process is this test binary, started again with one task that it repeats. It writes a line for every
//! answer.

use std::{
    collections::HashSet,
    env,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use orchestrix_core::{JobId, JobState, LeaseToken, NewJob};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{Fence, FinishError, Outcome, OutcomeReport, StoreError, prelude::*};
use orchestrix_testkit::PostgresServer;
use tokio_postgres::Client;

use crate::{
    invariants,
    jobs::*,
    locks::{LIMIT, until},
    support,
};

const ROUNDS: usize = 15;
/// The task of the process, and its database.
const TASK: &str = "ORCHESTRIX_CRASH_TASK";
const URL: &str = "ORCHESTRIX_CRASH_URL";
const ACKNOWLEDGED: &str = "acknowledged ";

/// Not a test: the body of the processes that the tests kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs only as the process that other tests start and kill"]
async fn work_until_killed() {
    let (Ok(task), Ok(url)) = (env::var(TASK), env::var(URL)) else { return };
    let store = open(&url).await;
    println!();
    match task.as_str() {
        "enqueue" => {
            let producers = (0..4).map(|_| {
                let store = store.clone();
                async move {
                    loop {
                        println!("{ACKNOWLEDGED}{}", enqueue(&store, job("t")).await);
                    }
                }
            });
            together::<(), _>(producers).await;
        }
        "claim" => loop {
            for claimed in claim(&store, 3).await {
                println!("{ACKNOWLEDGED}{}", claimed.token);
            }
        },
        "finish" => loop {
            let tokens: Vec<LeaseToken> = claim(&store, 5).await.into_iter().map(|claimed| claimed.token).collect();
            let items = tokens.iter().map(|token| OutcomeReport { token: *token, outcome: Outcome::DONE }).collect();
            for (token, answer) in tokens.iter().zip(store.finish_attempts(items).await.unwrap()) {
                assert_eq!(answer, Ok(JobState::Completed));
                println!("{ACKNOWLEDGED}{token}");
            }
        },
        other => panic!("unknown task {other}"),
    }
}

/// Starts a process, kills it a random moment after a random number of answers, and returns the acknowledged lines.
fn kill_in_the_middle_of(task: &str, url: &str) -> Vec<String> {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "crash::work_until_killed", "--ignored", "--nocapture"])
        .env(TASK, task)
        .env(URL, format!("{url}?application_name=crash"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let answers = rand::random_range(1..=60);
    let moment = Duration::from_micros(rand::random_range(0..4_000));
    let mut acknowledged = Vec::new();
    let mut line = String::new();
    let mut killed = false;
    // A line without its end was not acknowledged.
    while output.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
        acknowledged.extend(line.trim_end().strip_prefix(ACKNOWLEDGED).map(str::to_owned));
        line.clear();
        if acknowledged.len() >= answers && !killed {
            let until = Instant::now() + moment;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            child.kill().unwrap();
            killed = true;
        }
    }
    child.wait().unwrap();
    assert!(killed, "the process ended before the kill, after {} answers", acknowledged.len());
    acknowledged
}

/// Kills a process in the middle of `task` and waits until the server has ended its sessions, so that every open
/// transaction is decided.
async fn crash(task: &'static str, url: &str, client: &Client) -> Vec<String> {
    let url = url.to_owned();
    let acknowledged = tokio::task::spawn_blocking(move || kill_in_the_middle_of(task, &url)).await.unwrap();
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'crash'";
    until(client, "the server has ended the sessions of the killed process", |n| n == 0, sql).await;
    acknowledged
}

fn tokens(lines: &[String]) -> Vec<LeaseToken> {
    lines.iter().map(|line| line.parse().unwrap()).collect()
}

/// The tokens of the jobs in a table.
async fn tokens_in(client: &Client, table: &str, state: &str) -> HashSet<LeaseToken> {
    let sql = format!("SELECT id, lease_counter, lease_secret FROM orchestrix.{table} WHERE state = '{state}'");
    let rows = client.query(&sql, &[]).await.unwrap();
    let token = |row: &tokio_postgres::Row| LeaseToken {
        job: JobId::from_uuid(row.get(0)),
        counter: row.get(1),
        secret: row.get(2),
    };
    rows.iter().map(token).collect()
}

/// Expires and reaps every lease; returns how many.
async fn reap_all(store: &PostgresStore, client: &Client) -> usize {
    let sql = "UPDATE orchestrix.job SET lease_expires_at = now() - interval '1 second' WHERE state = 'running'";
    let expired = client.execute(sql, &[]).await.unwrap();
    let swept = store.reap_leases(Fence::NONE, 10_000, u16::MAX).await.unwrap();
    assert_eq!(swept.count as u64, expired, "every expired lease should be reaped once");
    swept.count
}

/// Completes all remaining jobs. Asserts that all `n` jobs are then completed, each once.
async fn complete_rest(store: &PostgresStore, client: &Client, n: usize) {
    let tokens: Vec<LeaseToken> = claim_all(store).await.into_iter().map(|claimed| claimed.token).collect();
    for some in tokens.chunks(1_000) {
        let items = some.iter().map(|token| OutcomeReport { token: *token, outcome: Outcome::DONE }).collect();
        assert!(store.finish_attempts(items).await.unwrap().iter().all(|answer| *answer == Ok(JobState::Completed)));
    }
    let sql = "SELECT count(*), count(*) FILTER (WHERE state = 'completed' AND attempts = lease_counter) FROM orchestrix.jobs";
    let row = client.query_one(sql, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (n as i64, n as i64));
    invariants::assert_consistent(client).await;
}

/// A job with enough attempts for any number of crashes.
fn durable_job() -> NewJob {
    NewJob { max_attempts: NewJob::MAX_ATTEMPTS, ..job("t") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_enqueue_acknowledged_before_a_kill_is_durable() {
    let (store, database) = support::store().await;
    let client = support::connect(database.url()).await;
    let mut acknowledged = HashSet::new();
    for _ in 0..ROUNDS {
        for line in crash("enqueue", database.url(), &client).await {
            assert!(acknowledged.insert(line.parse::<JobId>().unwrap()), "two jobs have the same id");
        }
    }
    let claimed: Vec<JobId> = claim_all(&store).await.iter().map(|claimed| claimed.id()).collect();
    let existing: HashSet<JobId> = claimed.iter().copied().collect();
    assert_eq!(existing.len(), claimed.len());
    assert!(acknowledged.is_subset(&existing), "an acknowledged job is missing");
    println!("{} acknowledged, {} found", acknowledged.len(), existing.len());
    invariants::assert_consistent(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_job_of_a_killed_worker_is_reaped_and_completed_once() {
    let (store, database) = support::store().await;
    let client = support::connect(database.url()).await;
    store.enqueue_jobs(vec![durable_job(); 2_000]).await.unwrap();
    let mut lost = 0;
    for _ in 0..ROUNDS {
        let owned = tokens(&crash("claim", database.url(), &client).await);
        let running = tokens_in(&client, "job", "running").await;
        assert!(owned.iter().all(|token| running.contains(token)), "an acknowledged claim is missing");
        lost += reap_all(&store, &client).await;
        assert_eq!(finish(&store, owned[0], Outcome::DONE).await, Err(FinishError::LeaseLost), "the lease was reaped");
    }
    println!("{lost} leases lost");
    complete_rest(&store, &client, 2_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_completion_acknowledged_before_a_kill_is_durable_and_the_rest_completes_once() {
    let (store, database) = support::store().await;
    let client = support::connect(database.url()).await;
    store.enqueue_jobs(vec![durable_job(); 3_000]).await.unwrap();
    let mut acknowledged = HashSet::new();
    for _ in 0..ROUNDS {
        for token in tokens(&crash("finish", database.url(), &client).await) {
            assert!(acknowledged.insert(token.job), "a job was completed twice");
        }
        reap_all(&store, &client).await;
    }
    let completed: HashSet<JobId> =
        tokens_in(&client, "history", "completed").await.into_iter().map(|token| token.job).collect();
    assert!(acknowledged.is_subset(&completed), "an acknowledged completion is missing");
    println!("{} acknowledged, {} completed", acknowledged.len(), completed.len());
    complete_rest(&store, &client, 3_000).await;
}

/// Calls that go on through every crash, and their answers.
#[derive(Default)]
struct Traffic {
    stopped: AtomicBool,
    enqueued: Mutex<Vec<JobId>>,
    finished: Mutex<Vec<JobId>>,
    errors: AtomicUsize,
}

impl Traffic {
    async fn produce(self: Arc<Self>, store: PostgresStore) {
        while !self.stopped.load(Ordering::Relaxed) {
            match store.enqueue_job(durable_job()).await {
                Ok(enqueued) => self.enqueued.lock().unwrap().push(enqueued.id),
                Err(error) => self.count_error(error).await,
            }
        }
    }

    async fn work(self: Arc<Self>, store: PostgresStore) {
        while !self.stopped.load(Ordering::Relaxed) {
            if let Err(error) = self.work_once(&store).await {
                self.count_error(error).await;
            }
        }
    }

    async fn work_once(&self, store: &PostgresStore) -> Result<(), StoreError> {
        let request = orchestrix_store::ClaimRequest::any(worker("w"), 10);
        let tokens: Vec<LeaseToken> =
            store.claim_jobs(&request).await?.into_iter().map(|claimed| claimed.token).collect();
        store.extend_leases(&tokens).await?;
        let items = tokens.iter().map(|token| OutcomeReport { token: *token, outcome: Outcome::DONE }).collect();
        let answers = store.finish_attempts(items).await?;
        let ended = tokens.iter().zip(answers).filter(|(_, answer)| answer.is_ok()).map(|(token, _)| token.job);
        self.finished.lock().unwrap().extend(ended);
        Ok(())
    }

    async fn count_error(&self, error: StoreError) {
        assert!(matches!(error, StoreError::Unavailable(_)), "not a transient error: {error:?}");
        self.errors.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    /// Waits until `count` has grown by `by`.
    async fn until_more(&self, what: &str, by: usize, count: impl Fn(&Self) -> usize) {
        let (begun, before) = (Instant::now(), count(self));
        while count(self) < before + by {
            assert!(begun.elapsed() < LIMIT, "{what}: only {} within {LIMIT:?}", count(self));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_survives_crashes_of_its_server_and_keeps_every_acknowledged_call() {
    let mut server = tokio::task::spawn_blocking(|| PostgresServer::builder().start().unwrap()).await.unwrap();
    let url = server.url("postgres");
    let store = PostgresStore::open(PostgresOptions::new(&url)).await.unwrap();
    let traffic = Arc::new(Traffic::default());
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..8 {
        calls.spawn(traffic.clone().produce(store.clone()));
    }
    calls.spawn(traffic.clone().work(store.clone()));
    let enqueued = |traffic: &Traffic| traffic.enqueued.lock().unwrap().len();
    let finished = |traffic: &Traffic| traffic.finished.lock().unwrap().len();
    let errors = |traffic: &Traffic| traffic.errors.load(Ordering::Relaxed);
    for _ in 0..3 {
        traffic.until_more("enqueued", 200, enqueued).await;
        traffic.until_more("finished", 20, finished).await;
        server = tokio::task::spawn_blocking(move || {
            server.kill().unwrap();
            server
        })
        .await
        .unwrap();
        traffic.until_more("errors", 3, errors).await;
        server = tokio::task::spawn_blocking(move || {
            server.restart().unwrap();
            server
        })
        .await
        .unwrap();
    }
    traffic.until_more("enqueued after the last crash", 200, enqueued).await;
    traffic.until_more("finished after the last crash", 20, finished).await;
    traffic.stopped.store(true, Ordering::Relaxed);
    calls.join_all().await;

    let client = support::connect(&url).await;
    let rows = client.query("SELECT id, state = 'completed' FROM orchestrix.jobs", &[]).await.unwrap();
    let existing: HashSet<JobId> = rows.iter().map(|row| JobId::from_uuid(row.get(0))).collect();
    let completed: HashSet<JobId> =
        rows.iter().filter(|row| row.get(1)).map(|row| JobId::from_uuid(row.get(0))).collect();
    assert!(traffic.enqueued.lock().unwrap().iter().all(|id| existing.contains(id)), "an acknowledged job is missing");
    assert!(traffic.finished.lock().unwrap().iter().all(|id| completed.contains(id)), "a completion is missing");
    println!("{} enqueued, {} finished, {} errors", enqueued(&traffic), finished(&traffic), errors(&traffic));
    invariants::assert_consistent(&client).await;
    tokio::task::spawn_blocking(move || drop(server)).await.unwrap();
}
