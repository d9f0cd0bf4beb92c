//! Several processes on one file, and several stores in one process.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    time::{Duration, Instant},
};

use orchestrix_core::{JobId, JobState, LeaseToken};
use orchestrix_sqlite::{SCHEMA_VERSION, SqliteOptions, SqliteStore};
use orchestrix_store::{Fence, FinishError, prelude::*};
use rand::seq::SliceRandom;

use crate::{
    consistency,
    jobs::*,
    process::{self, Process, read_line, report, start_concurrently},
    support::{Folder, connect, number, open, wait_until},
};

const BODY: &str = "races::take_part";
const KEYS: usize = 50;

/// Not a test: the body of the competing processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs only as one of the processes that other tests start"]
async fn take_part() {
    let Some((task, file)) = process::assignment() else { return };
    match task.as_str() {
        "drain" => {
            let store = open(&file).await;
            process::ready();
            loop {
                let tokens = claim(&store, rand::random_range(1..=20)).await;
                if tokens.is_empty() {
                    break;
                }
                for token in &tokens {
                    report(format!("claimed {token}"));
                }
                for (token, result) in tokens.iter().zip(complete(&store, &tokens).await) {
                    assert_eq!(result, Ok(JobState::Completed));
                    report(format!("completed {token}"));
                }
            }
        }
        "use keys" => {
            let store = open(&file).await;
            process::ready();
            let mut keys: Vec<usize> = (0..KEYS).collect();
            keys.shuffle(&mut rand::rng());
            for key in keys {
                let answer = store.enqueue_job(keyed(&format!("key-{key}"))).await.unwrap();
                report(format!("{key} {} {}", answer.id, answer.duplicate));
            }
        }
        "reap" => {
            let store = open(&file).await;
            process::ready();
            loop {
                let swept = store.reap_leases(Fence::NONE, 7, u16::MAX).await.unwrap();
                report(swept.count);
                if swept.count == 0 {
                    break;
                }
            }
        }
        "finish" => {
            let store = open(&file).await;
            let mut tokens = tokens_in(&connect(&file), "running");
            tokens.shuffle(&mut rand::rng());
            process::ready();
            for some in tokens.chunks(7) {
                for (token, result) in some.iter().zip(complete(&store, some).await) {
                    match result {
                        Ok(JobState::Completed) => report(format!("completed {token}")),
                        Err(FinishError::LeaseLost) => report(format!("lost {token}")),
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
        "flood" => {
            let store = open(&file).await;
            process::ready();
            let produce = |_| {
                let store = store.clone();
                async move {
                    loop {
                        enqueue(&store, job("flood")).await;
                    }
                }
            };
            run_concurrently::<(), _>((0..512).map(produce)).await;
        }
        "open" => {
            println!();
            report("ready");
            while let Some(file) = read_line() {
                let store = open(Path::new(&file)).await;
                report(enqueue(&store, job("t")).await);
            }
        }
        other => panic!("unknown task {other}"),
    }
}

/// The tokens on lines that begin with `word`.
fn tokens_after(word: &str, lines: &[String]) -> Vec<LeaseToken> {
    let tokens = lines.iter().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    tokens.map(|token| token.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_processes_drain_a_queue_and_no_job_is_leased_twice() {
    const JOBS: usize = 2_000;
    let folder = Folder::new();
    let recorded = open(&folder.file()).await.enqueue_jobs(vec![job("t"); JOBS]).await.unwrap();
    let recorded: HashSet<JobId> = recorded.iter().map(|enqueued| enqueued.id).collect();
    let processes = start_concurrently(BODY, &["drain"; 16], &folder.file());
    let mut completed = HashMap::new();
    let mut busy = 0;
    for lines in processes.into_iter().map(Process::finish) {
        let (owned, done) = (tokens_after("claimed", &lines), tokens_after("completed", &lines));
        assert_eq!(owned, done, "each process completed the jobs that it claimed");
        busy += usize::from(!done.is_empty());
        for token in done {
            assert_eq!(completed.insert(token.job, token), None, "two processes claimed job {}", token.job);
        }
    }
    println!("{busy} processes claimed jobs");
    assert!(busy > 1, "only one process did the work");
    assert_eq!(completed.keys().copied().collect::<HashSet<_>>(), recorded);
    let connection = connect(&folder.file());
    let there = tokens_in(&connection, "completed");
    assert_eq!(there.len(), JOBS);
    assert!(there.iter().all(|token| token.counter == 1 && completed[&token.job] == *token));
    consistency::assert_consistent(&connection);
    consistency::assert_intact(&connection);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_processes_that_use_the_same_idempotency_keys_get_the_same_jobs() {
    let folder = Folder::new();
    drop(open(&folder.file()).await);
    let processes = start_concurrently(BODY, &["use keys"; 8], &folder.file());
    let mut answers: HashMap<String, Vec<(String, String)>> = HashMap::new();
    for line in processes.into_iter().flat_map(Process::finish) {
        let [key, id, duplicate] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        answers.entry(key.to_owned()).or_default().push((id.to_owned(), duplicate.to_owned()));
    }
    assert_eq!(answers.len(), KEYS);
    for (key, answers) in &answers {
        assert_eq!(answers.len(), 8);
        assert!(answers.iter().all(|(id, _)| *id == answers[0].0), "key {key} has two jobs: {answers:?}");
        let first = answers.iter().filter(|(_, duplicate)| duplicate == "false").count();
        assert_eq!(first, 1, "exactly one process enqueued the job of key {key}");
    }
    let connection = connect(&folder.file());
    assert_eq!(number(&connection, "SELECT count(*) FROM job"), 50);
    assert_eq!(number(&connection, "SELECT count(*) FROM idempotency"), 50);
    consistency::assert_consistent(&connection);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_lease_is_either_reaped_or_finished_never_both() {
    // On a busy machine one process may end before the other begins.
    for _ in 0..10 {
        if reap_and_finish().await {
            return;
        }
    }
    panic!("only one process did the work");
}

/// One process reaps the leases that another finishes. Returns whether both got some.
async fn reap_and_finish() -> bool {
    const JOBS: usize = 700;
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    store.enqueue_jobs(vec![job("t"); JOBS]).await.unwrap();
    let leased: HashSet<LeaseToken> = claim_all(&store).await.into_iter().collect();
    let connection = connect(&folder.file());
    assert_eq!(expire_leases(&connection), JOBS);
    let mut processes = start_concurrently(BODY, &["reap", "finish"], &folder.file());
    let (finisher, reaper) = (processes.pop().unwrap().finish(), processes.pop().unwrap().finish());
    let reaped: usize = reaper.iter().map(|line| line.parse::<usize>().unwrap()).sum();
    let (completed, lost) = (tokens_after("completed", &finisher), tokens_after("lost", &finisher));
    println!("{reaped} reaped, {} completed, {} lost", completed.len(), lost.len());
    assert_eq!(completed.len() + reaped, JOBS, "each lease was reaped or its attempt completed");
    assert_eq!(lost.len(), reaped);
    assert_eq!(completed.iter().chain(&lost).copied().collect::<HashSet<_>>(), leased);
    let in_state = |state: &str| tokens_in(&connection, state).into_iter().collect::<HashSet<_>>();
    assert_eq!(in_state("completed"), completed.iter().copied().collect());
    assert_eq!(in_state("pending"), lost.iter().copied().collect());
    assert_eq!(number(&connection, "SELECT count(*) FROM attempt WHERE outcome = 'lost'"), reaped as i64);
    consistency::assert_consistent(&connection);
    !completed.is_empty() && !lost.is_empty()
}

#[test]
fn eight_processes_that_open_a_missing_file_at_once_all_work() {
    let folder = Folder::new();
    let mut processes: Vec<Process> = (0..8).map(|_| Process::start(BODY, "open", &folder.file())).collect();
    for process in &processes {
        process.expect("ready");
    }
    for round in 0..25 {
        let file = folder.path().join(format!("{round}.db"));
        for process in &mut processes {
            process.send_line(file.to_str().unwrap());
        }
        for process in &processes {
            process.next().expect("the process opened the file");
        }
        let connection = connect(&file);
        assert_eq!(number(&connection, "SELECT count(*) FROM job"), 8);
        assert_eq!(number(&connection, "SELECT count(*) FROM migration"), i64::from(SCHEMA_VERSION));
        consistency::assert_consistent(&connection);
        consistency::assert_intact(&connection);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_of_one_process_never_lease_the_same_job() {
    let folder = Folder::new();
    let stores = [open(&folder.file()).await, open(&folder.file()).await];
    let work = |i: usize| {
        let store = stores[i % 2].clone();
        async move {
            let mut claimed = Vec::new();
            for _ in 0..50 {
                enqueue(&store, job("t")).await;
                let tokens = claim(&store, 2).await;
                assert!(complete(&store, &tokens).await.iter().all(|result| *result == Ok(JobState::Completed)));
                claimed.extend(tokens);
            }
            claimed
        }
    };
    let tokens: Vec<LeaseToken> = run_concurrently((0..8).map(work)).await.into_iter().flatten().collect();
    let mut done: HashSet<JobId> = tokens.iter().map(|token| token.job).collect();
    assert_eq!(done.len(), tokens.len(), "a job was leased twice");
    // Early claims may have found no job, so some are left.
    for token in claim_all(&stores[0]).await {
        assert!(done.insert(token.job), "a job was leased again");
        assert_eq!(complete(&stores[1], &[token]).await, [Ok(JobState::Completed)], "a token is valid at every store");
    }
    assert_eq!(done.len(), 400);
    let connection = connect(&folder.file());
    assert_eq!(number(&connection, "SELECT count(*) FROM job WHERE state = 'completed' AND lease_counter = 1"), 400);
    consistency::assert_consistent(&connection);
    consistency::assert_intact(&connection);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_writes_constantly_lets_others_write() {
    let folder = Folder::new();
    // With the default lock timeout.
    let store = SqliteStore::open(SqliteOptions::new(folder.file())).await.unwrap();
    let _flood = start_concurrently(BODY, &["flood"], &folder.file());
    let connection = connect(&folder.file());
    let flooded = "SELECT coalesce(sum(n), 0) FROM depth WHERE state = 'pending'";
    wait_until("the flood has begun", || number(&connection, flooded) > 500).await;
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        let begun = Instant::now();
        enqueue(&store, job("t")).await;
        longest = longest.max(begun.elapsed());
    }
    println!("waited up to {longest:?} beside {} jobs", number(&connection, flooded));
}
