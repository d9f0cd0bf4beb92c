//! Processes that are killed at any moment: the file is sound, what was acknowledged stands, and nothing is lost or done
//! twice.
//!
//! Kills leave what was written to the operating system. That it is also on the disk by then is a setting, looked at
//! where the file is opened.

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
    books,
    jobs::*,
    process::{self, Process, say},
    support::{Folder, close, connect, number, open, options},
};

/// Kills in the middle of each of the three tasks, when nobody else has the file open.
const ROUNDS: usize = 14;
/// Kills while another process works on the same file.
const SHARED_ROUNDS: usize = 9;
const BODY: &str = "crash::work_until_killed";
/// Jobs that are recorded in one call with one that they wait for.
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
            together::<(), _>((0..4).map(|i| produce(store.clone(), i))).await;
        }
        "claim" => loop {
            for token in claim(&store, rand::random_range(1..=30)).await {
                say(token);
            }
        },
        "finish" => work(&store, 30).await,
        "finish one by one" => work(&store, 1).await,
        other => panic!("{other} is no task"),
    }
}

/// Records jobs in every way that takes more than one row.
async fn produce(store: SqliteStore, producer: usize) {
    for i in 0.. {
        let name = format!("{}-{producer}-{i}", std::process::id());
        match producer {
            0 => say(enqueue(&store, patient()).await),
            1 => say(enqueue(&store, NewJob { payload: payload(2_000), ..patient() }).await),
            2 => say(enqueue(&store, NewJob { max_attempts: NewJob::MAX_ATTEMPTS, ..keyed(&name) }).await),
            _ => {
                // Enough to be writing for a while. The correlation id finds those that were recorded together.
                let plain = NewJob { correlation_id: Some(name), payload: payload(3_000), ..patient() };
                let parent = NewJob { reference: Some("parent".into()), ..plain.clone() };
                let child = NewJob { depends_on: vec![DependsOn::Reference("parent".into())], ..plain };
                let family = std::iter::once(parent).chain(vec![child; CHILDREN]).collect();
                say(store.enqueue_jobs(family).await.unwrap()[0].id);
            }
        }
    }
}

async fn work(store: &SqliteStore, limit: usize) {
    loop {
        let tokens = claim(store, rand::random_range(1..=limit)).await;
        for (token, answer) in tokens.iter().zip(complete(store, &tokens).await) {
            assert_eq!(answer, Ok(JobState::Completed));
            say(token);
        }
    }
}

/// Starts a process, kills it after some answers and a moment more, and returns what it had acknowledged by then.
fn kill_in_the_middle_of(task: &str, file: &Path) -> Vec<String> {
    let mut process = Process::start(BODY, task, file);
    process.expect("ready");
    process.tell("go");
    let answers = rand::random_range(1..=60);
    let mut acknowledged: Vec<String> =
        (0..answers).map(|_| process.next().expect("a process that works until it is killed")).collect();
    pass(Duration::from_micros(rand::random_range(0..8_000)));
    acknowledged.extend(process.kill());
    acknowledged
}

/// Lets a moment pass that is far shorter than the shortest sleep one can rely on.
fn pass(moment: Duration) {
    let until = Instant::now() + moment;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// A file that processes die on.
struct Scene {
    _folder: Folder,
    file: PathBuf,
}

impl Scene {
    async fn new(jobs: usize) -> Self {
        let folder = Folder::new();
        let scene = Self { file: folder.file(), _folder: folder };
        if jobs > 0 {
            open(&scene.file).await.enqueue_jobs(vec![patient(); jobs]).await.unwrap();
        }
        scene
    }

    /// Kills a process in the middle of `task`; answers with what it had acknowledged, and a connection that sees what
    /// is left: sound and whole.
    async fn crash(&self, task: &'static str) -> (Vec<String>, Connection) {
        let file = self.file.clone();
        let acknowledged = tokio::task::spawn_blocking(move || kill_in_the_middle_of(task, &file)).await.unwrap();
        let connection = connect(&self.file);
        books::assert_readable(&connection);
        books::assert_balanced(&connection);
        let halves: i64 = connection.query_row(HALVES, [CHILDREN], |row| row.get(0)).unwrap();
        assert_eq!(halves, 0, "of jobs that were recorded together some are missing");
        (acknowledged, connection)
    }

    /// Lets every lease run out and takes it back.
    async fn take_back(&self, connection: &Connection) -> usize {
        let expired = expire_leases(connection);
        let swept = open(&self.file).await.reap_leases(Fence::NONE, 10_000, u16::MAX).await.unwrap();
        assert_eq!(swept.count, expired, "every lease is taken back, and once");
        expired
    }

    /// Works off all that is left; every job must then have been completed, each once.
    async fn work_off(&self) {
        let store = open(&self.file).await;
        loop {
            // Children are found in the round after their parents; one call tells only so many of them.
            let tokens = claim_all(&store).await;
            if tokens.is_empty() && store.unblock_jobs(Fence::NONE, 10_000).await.unwrap().count == 0 {
                break;
            }
            for some in tokens.chunks(1_000) {
                assert!(complete(&store, some).await.iter().all(|answer| *answer == Ok(JobState::Completed)));
            }
        }
        let connection = connect(&self.file);
        let once = "SELECT count(*) FROM job WHERE state <> 'completed' OR attempts <> lease_counter";
        assert_eq!(number(&connection, once), 0, "a job was not done, or not once");
        let twice = "SELECT count(*) FROM attempt WHERE outcome = 'completed' GROUP BY job_id HAVING count(*) > 1";
        assert_eq!(number(&connection, &format!("SELECT count(*) FROM ({twice})")), 0, "a job was completed twice");
        assert_eq!(store.queue_depths(&PageRequest::first(10)).await.unwrap().items, [], "nothing is left");
        books::assert_balanced(&connection);
        books::assert_sound(&connection);
    }
}

const HALVES: &str = "
    SELECT count(*) FROM (
        SELECT options ->> 'correlationId' AS name, count(*) AS n, sum(has_parents) AS children, sum(has_dependents) AS parents
        FROM job WHERE has_parents OR has_dependents GROUP BY name)
    WHERE name IS NULL OR (n, children, parents) <> (?1 + 1, ?1, 1)";

fn tokens(lines: &[String]) -> Vec<LeaseToken> {
    lines.iter().map(|line| line.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_enqueue_that_was_acknowledged_before_a_kill_is_there() {
    let scene = Scene::new(0).await;
    let mut acknowledged = HashSet::new();
    for _ in 0..ROUNDS {
        let (lines, connection) = scene.crash("enqueue").await;
        for line in lines {
            assert!(acknowledged.insert(line.parse::<JobId>().unwrap()), "two jobs were given one id");
        }
        assert!(acknowledged.is_subset(&ids(&connection)), "an acknowledged job is missing");
    }
    let connection = connect(&scene.file);
    assert!(number(&connection, "SELECT count(*) FROM dependency") > 0, "nothing was recorded together");
    println!("{} acknowledged, {} there", acknowledged.len(), number(&connection, "SELECT count(*) FROM job"));
    scene.work_off().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_job_whose_worker_was_killed_is_taken_back_and_done_once() {
    let scene = Scene::new(2_000).await;
    let mut lost = 0;
    for _ in 0..ROUNDS {
        let (lines, connection) = scene.crash("claim").await;
        let owned = tokens(&lines);
        let running: HashSet<LeaseToken> = tokens_in(&connection, "running").into_iter().collect();
        assert!(owned.iter().all(|token| running.contains(token)), "a claim that was acknowledged is not there");
        lost += scene.take_back(&connection).await;
        let late = complete(&open(&scene.file).await, &owned[..1]).await;
        assert_eq!(late, [Err(FinishError::LeaseLost)], "it came too late");
    }
    println!("{lost} leases lost");
    scene.work_off().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_success_that_was_acknowledged_before_a_kill_stands_and_the_rest_is_done_once() {
    let scene = Scene::new(3_000).await;
    let mut acknowledged = HashSet::new();
    for _ in 0..ROUNDS {
        let (lines, connection) = scene.crash("finish").await;
        let completed: HashSet<LeaseToken> = tokens_in(&connection, "completed").into_iter().collect();
        for token in tokens(&lines) {
            assert!(acknowledged.insert(token.job), "a job was completed twice");
            assert!(completed.contains(&token), "an acknowledged success is missing");
        }
        scene.take_back(&connection).await;
    }
    println!("{} acknowledged", acknowledged.len());
    scene.work_off().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_works_on_while_others_are_killed_on_the_same_file() {
    let scene = Scene::new(4_000).await;
    let mut survivor = Process::start(BODY, "finish one by one", &scene.file);
    survivor.expect("ready");
    survivor.tell("go");
    let (mut recorded, mut leased, mut done) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut completed = |lines: &[String]| {
        for token in tokens(lines) {
            assert!(done.insert(token.job), "two processes completed one job");
        }
    };
    for round in 0..SHARED_ROUNDS {
        let task = ["enqueue", "claim", "finish"][round % 3];
        let (lines, _) = scene.crash(task).await;
        match task {
            "enqueue" => recorded.extend(lines.iter().map(|line| line.parse::<JobId>().unwrap())),
            "claim" => leased.extend(tokens(&lines)),
            _ => completed(&lines),
        }
        // What it said by now may have been from before the kill.
        let before = survivor.said();
        let after: Vec<String> = (0..5).map(|_| survivor.next().expect("it lives")).collect();
        completed(&before);
        completed(&after);
    }
    completed(&survivor.kill());
    let connection = connect(&scene.file);
    assert!(recorded.is_subset(&ids(&connection)), "an acknowledged job is missing");
    let running: HashSet<LeaseToken> = tokens_in(&connection, "running").into_iter().collect();
    assert!(leased.is_subset(&running), "somebody else got a job that was leased");
    let finished: HashSet<JobId> = tokens_in(&connection, "completed").into_iter().map(|token| token.job).collect();
    assert!(done.is_subset(&finished), "an acknowledged success is missing");
    println!("{} recorded, {} leased, {} done", recorded.len(), leased.len(), done.len());
    scene.take_back(&connection).await;
    scene.work_off().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_while_it_makes_the_file_leaves_one_that_opens() {
    for _ in 0..20 {
        let folder = Folder::new();
        let mut process = Process::start(BODY, "enqueue", &folder.file());
        process.expect("ready");
        process.tell("go");
        pass(Duration::from_micros(rand::random_range(0..40_000)));
        let acknowledged = process.kill();
        let store = open(&folder.file()).await;
        enqueue(&store, job("t")).await;
        let connection = connect(&folder.file());
        let there = number(&connection, "SELECT count(*) FROM job");
        assert!(there > i64::try_from(acknowledged.len()).unwrap());
        assert_eq!(number(&connection, "SELECT count(*) FROM migration"), i64::from(SCHEMA_VERSION));
        books::assert_balanced(&connection);
        books::assert_sound(&connection);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_was_let_go_in_peace_leaves_everything_in_the_one_file() {
    let folder = Folder::new();
    for round in 1..=20 {
        let store = SqliteStore::open(SqliteOptions { readers: 32, ..options(&folder.file()) }).await.unwrap();
        let id = enqueue(&store, job("t")).await;
        // Many readers are closed with it, and none of them may be the last.
        together((0..64).map(|_| {
            let store = store.clone();
            async move { store.job(id).await.unwrap().expect("a job") }
        }))
        .await;
        match round % 2 {
            0 => close(store, &folder.file()).await,
            // Asked to, it is done when it says so, and nothing more is taken.
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
