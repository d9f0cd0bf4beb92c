//! Processes that are killed at random moments: the file stays intact, acknowledged writes stay, and no job is lost or
//! done twice.
//!
//! A killed process leaves its writes with the operating system. That they have also reached the disk depends on a
//! setting, which a unit test of `database.rs` checks.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use orchestrix_core::{DependsOn, JobId, JobState, LeaseToken, NewJob};
use orchestrix_sqlite::{SCHEMA_VERSION, SqliteOptions, SqliteStore};
use orchestrix_store::{Fence, FinishError, PageRequest, StoreError, prelude::*};
use rusqlite::Connection;

use crate::{
    consistency,
    jobs::*,
    process::{self, Process, report},
    support::{Folder, close, connect, number, open, options},
};

/// The number of kills per task while no other process has the file open.
const ROUNDS: usize = 14;
/// The number of kills while another process works on the same file.
const SHARED_ROUNDS: usize = 9;
const BODY: &str = "crash::work_until_killed";
/// The number of children that are enqueued in one call with their parent.
const CHILDREN: usize = 30;

/// Not a test: the body of the processes that are killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs only as the process that other tests start and kill"]
async fn work_until_killed() {
    let Some((task, file)) = process::assignment() else { return };
    process::ready();
    let store = open(&file).await;
    match task.as_str() {
        "enqueue" => {
            run_concurrently::<(), _>((0..4).map(|i| produce(store.clone(), i))).await;
        }
        "claim" => loop {
            for token in claim(&store, rand::random_range(1..=30)).await {
                report(token);
            }
        },
        "finish" => work(&store, 30).await,
        "finish one by one" => work(&store, 1).await,
        other => panic!("unknown task {other}"),
    }
}

/// Enqueues jobs in every way that writes more than one row.
async fn produce(store: SqliteStore, producer: usize) {
    for i in 0.. {
        let name = format!("{}-{producer}-{i}", std::process::id());
        match producer {
            0 => report(enqueue(&store, crash_tolerant()).await),
            1 => report(enqueue(&store, NewJob { payload: payload(2_000), ..crash_tolerant() }).await),
            2 => report(enqueue(&store, NewJob { max_attempts: NewJob::MAX_ATTEMPTS, ..keyed(&name) }).await),
            _ => {
                // Large enough to be written for a while. The correlation id identifies the jobs of one call.
                let plain = NewJob { correlation_id: Some(name), payload: payload(3_000), ..crash_tolerant() };
                let parent = NewJob { reference: Some("parent".into()), ..plain.clone() };
                let child = NewJob { depends_on: vec![DependsOn::Reference("parent".into())], ..plain };
                let family = std::iter::once(parent).chain(vec![child; CHILDREN]).collect();
                report(store.enqueue_jobs(family).await.unwrap()[0].id);
            }
        }
    }
}

async fn work(store: &SqliteStore, limit: usize) {
    loop {
        let tokens = claim(store, rand::random_range(1..=limit)).await;
        for (token, result) in tokens.iter().zip(complete(store, &tokens).await) {
            assert_eq!(result, Ok(JobState::Completed));
            report(token);
        }
    }
}

/// Starts a process, kills it a moment after some replies, and returns the lines that it had printed by then.
fn kill_in_the_middle_of(task: &str, file: &Path) -> Vec<String> {
    let mut process = Process::start(BODY, task, file);
    process.expect("ready");
    process.send_line("go");
    let replies = rand::random_range(1..=60);
    let mut acknowledged: Vec<String> =
        (0..replies).map(|_| process.next().expect("the process runs until it is killed")).collect();
    spin(Duration::from_micros(rand::random_range(0..8_000)));
    acknowledged.extend(process.kill());
    acknowledged
}

/// Waits for a time that is far shorter than the shortest reliable sleep.
fn spin(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// A file on which processes are killed.
struct CrashTest {
    _folder: Folder,
    file: PathBuf,
}

impl CrashTest {
    async fn new(jobs: usize) -> Self {
        let folder = Folder::new();
        let test = Self { file: folder.file(), _folder: folder };
        if jobs > 0 {
            open(&test.file).await.enqueue_jobs(vec![crash_tolerant(); jobs]).await.unwrap();
        }
        test
    }

    /// Kills a process in the middle of `task`, then checks the file. Returns the acknowledged lines and a connection.
    async fn crash(&self, task: &'static str) -> (Vec<String>, Connection) {
        let file = self.file.clone();
        let acknowledged = tokio::task::spawn_blocking(move || kill_in_the_middle_of(task, &file)).await.unwrap();
        let connection = connect(&self.file);
        consistency::assert_pages_intact(&connection);
        consistency::assert_consistent(&connection);
        let partial: i64 = connection.query_row(PARTIAL_CALLS, [CHILDREN], |row| row.get(0)).unwrap();
        assert_eq!(partial, 0, "some jobs of one call are missing");
        (acknowledged, connection)
    }

    /// Makes every lease expire and reaps it.
    async fn reap_all(&self, connection: &Connection) -> usize {
        let expired = expire_leases(connection);
        let swept = open(&self.file).await.reap_leases(Fence::NONE, 10_000, u16::MAX).await.unwrap();
        assert_eq!(swept.count, expired, "every lease is reaped exactly once");
        expired
    }

    /// Completes all remaining jobs and checks that every job was completed exactly once.
    async fn drain(&self) {
        let store = open(&self.file).await;
        loop {
            // Children become claimable in the round after their parents. One call resolves a limited number of them.
            let tokens = claim_all(&store).await;
            if tokens.is_empty() && store.unblock_jobs(Fence::NONE, 10_000).await.unwrap().count == 0 {
                break;
            }
            for some in tokens.chunks(1_000) {
                assert!(complete(&store, some).await.iter().all(|result| *result == Ok(JobState::Completed)));
            }
        }
        let connection = connect(&self.file);
        let not_once = "SELECT count(*) FROM job WHERE state <> 'completed' OR attempts <> lease_counter";
        assert_eq!(number(&connection, not_once), 0, "a job was not completed exactly once");
        let twice = "SELECT count(*) FROM attempt WHERE outcome = 'completed' GROUP BY job_id HAVING count(*) > 1";
        assert_eq!(number(&connection, &format!("SELECT count(*) FROM ({twice})")), 0, "a job was completed twice");
        assert_eq!(store.queue_depths(&PageRequest::first(10)).await.unwrap().items, [], "no unfinished job is left");
        consistency::assert_consistent(&connection);
        consistency::assert_intact(&connection);
    }
}

const PARTIAL_CALLS: &str = "
    SELECT count(*) FROM (
        SELECT options ->> 'correlationId' AS name, count(*) AS n, sum(has_parents) AS children, sum(has_dependents) AS parents
        FROM job WHERE has_parents OR has_dependents GROUP BY name)
    WHERE name IS NULL OR (n, children, parents) <> (?1 + 1, ?1, 1)";

fn tokens(lines: &[String]) -> Vec<LeaseToken> {
    lines.iter().map(|line| line.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_enqueue_survives_a_kill() {
    let test = CrashTest::new(0).await;
    let mut acknowledged = HashSet::new();
    for _ in 0..ROUNDS {
        let (lines, connection) = test.crash("enqueue").await;
        for line in lines {
            assert!(acknowledged.insert(line.parse::<JobId>().unwrap()), "two jobs have the same id");
        }
        assert!(acknowledged.is_subset(&ids(&connection)), "an acknowledged job is missing");
    }
    let connection = connect(&test.file);
    assert!(number(&connection, "SELECT count(*) FROM dependency") > 0, "no call with dependencies was acknowledged");
    println!("{} acknowledged, {} found", acknowledged.len(), number(&connection, "SELECT count(*) FROM job"));
    test.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_job_of_a_killed_worker_is_reaped_and_completed_once() {
    let test = CrashTest::new(2_000).await;
    let mut lost = 0;
    for _ in 0..ROUNDS {
        let (lines, connection) = test.crash("claim").await;
        let owned = tokens(&lines);
        let running: HashSet<LeaseToken> = tokens_in(&connection, "running").into_iter().collect();
        assert!(owned.iter().all(|token| running.contains(token)), "an acknowledged claim is missing");
        lost += test.reap_all(&connection).await;
        let late = complete(&open(&test.file).await, &owned[..1]).await;
        assert_eq!(late, [Err(FinishError::LeaseLost)], "the lease was reaped");
    }
    println!("{lost} leases lost");
    test.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_completion_survives_a_kill_and_the_rest_is_completed_once() {
    let test = CrashTest::new(3_000).await;
    let mut acknowledged = HashSet::new();
    for _ in 0..ROUNDS {
        let (lines, connection) = test.crash("finish").await;
        let completed: HashSet<LeaseToken> = tokens_in(&connection, "completed").into_iter().collect();
        for token in tokens(&lines) {
            assert!(acknowledged.insert(token.job), "a job was completed twice");
            assert!(completed.contains(&token), "an acknowledged completion is missing");
        }
        test.reap_all(&connection).await;
    }
    println!("{} acknowledged", acknowledged.len());
    test.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_keeps_working_while_others_are_killed_on_the_same_file() {
    let test = CrashTest::new(4_000).await;
    let mut survivor = Process::start(BODY, "finish one by one", &test.file);
    survivor.expect("ready");
    survivor.send_line("go");
    let (mut enqueued, mut leased, mut done) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut completed = |lines: &[String]| {
        for token in tokens(lines) {
            assert!(done.insert(token.job), "two processes completed one job");
        }
    };
    for round in 0..SHARED_ROUNDS {
        let task = ["enqueue", "claim", "finish"][round % 3];
        let (lines, _) = test.crash(task).await;
        match task {
            "enqueue" => enqueued.extend(lines.iter().map(|line| line.parse::<JobId>().unwrap())),
            "claim" => leased.extend(tokens(&lines)),
            _ => completed(&lines),
        }
        // Lines that are available now may be from before the kill.
        let before = survivor.unread_lines();
        let after: Vec<String> = (0..5).map(|_| survivor.next().expect("the survivor keeps working")).collect();
        completed(&before);
        completed(&after);
    }
    completed(&survivor.kill());
    let connection = connect(&test.file);
    assert!(enqueued.is_subset(&ids(&connection)), "an acknowledged job is missing");
    let running: HashSet<LeaseToken> = tokens_in(&connection, "running").into_iter().collect();
    assert!(leased.is_subset(&running), "a leased job was leased again");
    let finished: HashSet<JobId> = tokens_in(&connection, "completed").into_iter().map(|token| token.job).collect();
    assert!(done.is_subset(&finished), "an acknowledged completion is missing");
    println!("{} enqueued, {} leased, {} done", enqueued.len(), leased.len(), done.len());
    test.reap_all(&connection).await;
    test.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_opens_after_a_process_was_killed_while_creating_it() {
    for _ in 0..20 {
        let folder = Folder::new();
        let mut process = Process::start(BODY, "enqueue", &folder.file());
        process.expect("ready");
        process.send_line("go");
        spin(Duration::from_micros(rand::random_range(0..40_000)));
        let acknowledged = process.kill();
        let store = open(&folder.file()).await;
        enqueue(&store, job("t")).await;
        let connection = connect(&folder.file());
        let jobs = number(&connection, "SELECT count(*) FROM job");
        assert!(jobs > i64::try_from(acknowledged.len()).unwrap());
        assert_eq!(number(&connection, "SELECT count(*) FROM migration"), i64::from(SCHEMA_VERSION));
        consistency::assert_consistent(&connection);
        consistency::assert_intact(&connection);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_or_dropped_store_leaves_all_data_in_one_file() {
    let folder = Folder::new();
    for round in 1..=20 {
        let store = SqliteStore::open(SqliteOptions { readers: 32, ..options(&folder.file()) }).await.unwrap();
        let id = enqueue(&store, job("t")).await;
        // Opens many readers. None of them may be the last connection that closes.
        run_concurrently((0..64).map(|_| {
            let store = store.clone();
            async move { store.job(id).await.unwrap().expect("a job") }
        }))
        .await;
        match round % 2 {
            0 => close(store, &folder.file()).await,
            // After `close` returns, the log is gone and clones are refused.
            _ => {
                let clone = store.clone();
                store.close().await;
                assert!(!std::fs::exists(crate::wal::path(&folder.file())).unwrap());
                assert!(matches!(clone.job(id).await, Err(StoreError::Unavailable(_))));
                assert!(matches!(clone.enqueue_job(job("t")).await, Err(StoreError::Unavailable(_))));
            }
        }
        let copy = folder.path().join("copy.db");
        std::fs::copy(folder.file(), &copy).unwrap();
        assert_eq!(number(&connect(&copy), "SELECT count(*) FROM job"), round);
    }
}
