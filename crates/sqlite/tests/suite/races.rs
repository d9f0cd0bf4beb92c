//! Several processes on one file, and several stores in one process: what each is told, and what stands in the end.

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
    books,
    jobs::*,
    process::{self, Process, hear, say, start_together},
    support::{Folder, connect, number, open, until},
};

const BODY: &str = "races::take_part";
const KEYS: usize = 50;

/// Not a test: the body of the processes that race.
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
                    say(format!("claimed {token}"));
                }
                for (token, answer) in tokens.iter().zip(complete(&store, &tokens).await) {
                    assert_eq!(answer, Ok(JobState::Completed));
                    say(format!("completed {token}"));
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
                say(format!("{key} {} {}", answer.id, answer.duplicate));
            }
        }
        "reap" => {
            let store = open(&file).await;
            process::ready();
            loop {
                let swept = store.reap_leases(Fence::NONE, 7, u16::MAX).await.unwrap();
                say(swept.count);
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
                for (token, answer) in some.iter().zip(complete(&store, some).await) {
                    match answer {
                        Ok(JobState::Completed) => say(format!("completed {token}")),
                        Err(FinishError::LeaseLost) => say(format!("lost {token}")),
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
            together::<(), _>((0..512).map(produce)).await;
        }
        "open" => {
            println!();
            say("ready");
            while let Some(file) = hear() {
                let store = open(Path::new(&file)).await;
                say(enqueue(&store, job("t")).await);
            }
        }
        other => panic!("{other} is no task"),
    }
}

/// The tokens on lines that begin with `word`.
fn tokens_after(word: &str, lines: &[String]) -> Vec<LeaseToken> {
    let tokens = lines.iter().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    tokens.map(|token| token.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_processes_drain_a_queue_and_no_two_are_given_the_same_job() {
    const JOBS: usize = 2_000;
    let folder = Folder::new();
    let recorded = open(&folder.file()).await.enqueue_jobs(vec![job("t"); JOBS]).await.unwrap();
    let recorded: HashSet<JobId> = recorded.iter().map(|enqueued| enqueued.id).collect();
    let processes = start_together(BODY, &["drain"; 16], &folder.file());
    let mut completed = HashMap::new();
    let mut busy = 0;
    for lines in processes.into_iter().map(Process::finish) {
        let (owned, done) = (tokens_after("claimed", &lines), tokens_after("completed", &lines));
        assert_eq!(owned, done, "whatever a process was given, it completed");
        busy += usize::from(!done.is_empty());
        for token in done {
            assert_eq!(completed.insert(token.job, token), None, "two processes were given job {}", token.job);
        }
    }
    println!("{busy} processes had work");
    assert!(busy > 1, "there was no race");
    assert_eq!(completed.keys().copied().collect::<HashSet<_>>(), recorded);
    let connection = connect(&folder.file());
    let there = tokens_in(&connection, "completed");
    assert_eq!(there.len(), JOBS);
    assert!(there.iter().all(|token| token.counter == 1 && completed[&token.job] == *token));
    books::assert_balanced(&connection);
    books::assert_sound(&connection);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_processes_that_use_the_same_keys_are_told_of_the_same_jobs() {
    let folder = Folder::new();
    drop(open(&folder.file()).await);
    let processes = start_together(BODY, &["use keys"; 8], &folder.file());
    let mut answers: HashMap<String, Vec<(String, String)>> = HashMap::new();
    for line in processes.into_iter().flat_map(Process::finish) {
        let [key, id, duplicate] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        answers.entry(key.to_owned()).or_default().push((id.to_owned(), duplicate.to_owned()));
    }
    assert_eq!(answers.len(), KEYS);
    for (key, answers) in &answers {
        assert_eq!(answers.len(), 8);
        assert!(answers.iter().all(|(id, _)| *id == answers[0].0), "key {key} stands for two jobs: {answers:?}");
        let first = answers.iter().filter(|(_, duplicate)| duplicate == "false").count();
        assert_eq!(first, 1, "one process recorded the job of key {key}, the others found it");
    }
    let connection = connect(&folder.file());
    assert_eq!(number(&connection, "SELECT count(*) FROM job"), 50);
    assert_eq!(number(&connection, "SELECT count(*) FROM idempotency"), 50);
    books::assert_balanced(&connection);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_taken_back_by_one_process_or_finished_by_another_and_never_both() {
    // On a machine that is busy with other things one of the two may be done before the other begins.
    for _ in 0..10 {
        if reap_and_finish().await {
            return;
        }
    }
    panic!("there was no race");
}

/// Lets one process take back the leases that another finishes; whether both had some.
async fn reap_and_finish() -> bool {
    const JOBS: usize = 700;
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    store.enqueue_jobs(vec![job("t"); JOBS]).await.unwrap();
    let leased: HashSet<LeaseToken> = claim_all(&store).await.into_iter().collect();
    let connection = connect(&folder.file());
    assert_eq!(expire_leases(&connection), JOBS);
    let mut processes = start_together(BODY, &["reap", "finish"], &folder.file());
    let (finisher, reaper) = (processes.pop().unwrap().finish(), processes.pop().unwrap().finish());
    let reaped: usize = reaper.iter().map(|line| line.parse::<usize>().unwrap()).sum();
    let (completed, lost) = (tokens_after("completed", &finisher), tokens_after("lost", &finisher));
    println!("{reaped} reaped, {} completed, {} lost", completed.len(), lost.len());
    assert_eq!(completed.len() + reaped, JOBS, "each lease was taken back or its attempt counted");
    assert_eq!(lost.len(), reaped);
    assert_eq!(completed.iter().chain(&lost).copied().collect::<HashSet<_>>(), leased);
    let stands = |state: &str| tokens_in(&connection, state).into_iter().collect::<HashSet<_>>();
    assert_eq!(stands("completed"), completed.iter().copied().collect());
    assert_eq!(stands("pending"), lost.iter().copied().collect());
    assert_eq!(number(&connection, "SELECT count(*) FROM attempt WHERE outcome = 'lost'"), reaped as i64);
    books::assert_balanced(&connection);
    !completed.is_empty() && !lost.is_empty()
}

#[test]
fn eight_processes_that_open_at_once_where_there_is_no_file_all_work() {
    let folder = Folder::new();
    let mut processes: Vec<Process> = (0..8).map(|_| Process::start(BODY, "open", &folder.file())).collect();
    for process in &processes {
        process.expect("ready");
    }
    for round in 0..25 {
        let file = folder.path().join(format!("{round}.db"));
        for process in &mut processes {
            process.tell(file.to_str().unwrap());
        }
        for process in &processes {
            process.next().expect("a process that could open the file");
        }
        let connection = connect(&file);
        assert_eq!(number(&connection, "SELECT count(*) FROM job"), 8);
        assert_eq!(number(&connection, "SELECT count(*) FROM migration"), i64::from(SCHEMA_VERSION));
        books::assert_balanced(&connection);
        books::assert_sound(&connection);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_on_one_file_in_one_process_share_the_work_and_no_job() {
    let folder = Folder::new();
    let stores = [open(&folder.file()).await, open(&folder.file()).await];
    let work = |i: usize| {
        let store = stores[i % 2].clone();
        async move {
            let mut mine = Vec::new();
            for _ in 0..50 {
                enqueue(&store, job("t")).await;
                let tokens = claim(&store, 2).await;
                assert!(complete(&store, &tokens).await.iter().all(|answer| *answer == Ok(JobState::Completed)));
                mine.extend(tokens);
            }
            mine
        }
    };
    let tokens: Vec<LeaseToken> = together((0..8).map(work)).await.into_iter().flatten().collect();
    let mut done: HashSet<JobId> = tokens.iter().map(|token| token.job).collect();
    assert_eq!(done.len(), tokens.len(), "two were given the same job");
    // Whoever came first may have found nothing.
    for token in claim_all(&stores[0]).await {
        assert!(done.insert(token.job), "a job was given out again");
        assert_eq!(complete(&stores[1], &[token]).await, [Ok(JobState::Completed)], "a token is good at any store");
    }
    assert_eq!(done.len(), 400);
    let connection = connect(&folder.file());
    assert_eq!(number(&connection, "SELECT count(*) FROM job WHERE state = 'completed' AND lease_counter = 1"), 400);
    books::assert_balanced(&connection);
    books::assert_sound(&connection);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_writes_without_a_pause_leaves_room_for_others() {
    let folder = Folder::new();
    // With no more patience than a store has unless told otherwise.
    let store = SqliteStore::open(SqliteOptions::new(folder.file())).await.unwrap();
    let _flood = start_together(BODY, &["flood"], &folder.file());
    let connection = connect(&folder.file());
    let flooded = "SELECT coalesce(sum(n), 0) FROM depth WHERE state = 'pending'";
    until("the flood has begun", || number(&connection, flooded) > 500).await;
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        let begun = Instant::now();
        enqueue(&store, job("t")).await;
        longest = longest.max(begun.elapsed());
    }
    println!("waited up to {longest:?} beside {} jobs", number(&connection, flooded));
}
