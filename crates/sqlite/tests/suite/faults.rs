//! A full disk, a file that may not be written, one that somebody else holds, one that is not ours: every caller is told
//! the truth in words that say what to do, and nothing is left half-written.
//!
//! Disks are filled and made read-only in a mount namespace of a process's own, which takes root or a system that gives
//! users such namespaces. Where neither is to be had these tests fail: nothing else would show what they show.

use std::{
    collections::HashSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use orchestrix_core::{JobId, JobState, Json, LeaseToken, NewJob};
use orchestrix_sqlite::{SCHEMA_VERSION, SqliteOptions, SqliteStore};
use orchestrix_store::{ClaimRequest, FinishError, Outcome, OutcomeReport, PageRequest, StoreError, prelude::*};
use uuid::Uuid;

use crate::{
    books,
    jobs::*,
    process::{self, Process, say},
    support::{Folder, Holder, LIMIT, close, connect, number, open, options},
    wal,
};

const MEGABYTE: usize = 1024 * 1024;

/// Runs a part of [`inside`] in a process that may mount what it likes and where nobody else sees it.
fn in_a_namespace(task: &str) {
    let folder = Folder::new();
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let program: &[&str] =
        if root { &["unshare", "--mount", "--"] } else { &["unshare", "--map-root-user", "--mount", "--"] };
    let process = Process::start_by(program, "faults::inside", task, &folder.file());
    // Unless it says so it was not run at all.
    assert_eq!(process.finish(), [task]);
}

/// Not a test: the body of those that need disks of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs only as the process that other tests start"]
async fn inside() {
    let Some((task, file)) = process::assignment() else { return };
    println!();
    match task.as_str() {
        "fill the disk" => fill_the_disk(&file).await,
        "one large call among small ones" => one_large_call_among_small_ones(&file, 6).await,
        // More than the writer keeps in memory: it fails in the middle of a statement.
        "one huge call among small ones" => one_large_call_among_small_ones(&file, 90).await,
        "open on a full disk" => open_on_a_full_disk(&file).await,
        "read-only directory" => read_only(&file, file.parent().unwrap()).await,
        "read-only file" => read_only(&file, &file).await,
        other => panic!("{other} is no task"),
    }
    say(task);
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().expect(program);
    assert!(status.success(), "{program} {arguments:?}: {status}");
}

/// A disk of three megabytes where `file` will be; the answer is a file to fill it with.
fn mount_small_disk(file: &Path) -> PathBuf {
    let folder = file.parent().unwrap();
    run("mount", &["-t", "tmpfs", "-o", "size=3m", "tmpfs", folder.to_str().unwrap()]);
    folder.join("ballast")
}

fn assert_disk_full(error: &StoreError, file: &Path) {
    let StoreError::Unavailable(text) = error else { panic!("not what a caller would wait out: {error:?}") };
    assert!(text.contains(file.to_str().unwrap()), "does not say where: {text}");
    assert!(text.contains("disk is full"), "does not say why: {text}");
    assert!(text.contains("nothing was written"), "does not say what became of it: {text}");
}

#[test]
fn on_a_full_disk_calls_are_refused_what_was_acknowledged_stands_and_work_goes_on_once_there_is_space() {
    in_a_namespace("fill the disk");
}

async fn fill_the_disk(file: &Path) {
    let ballast = mount_small_disk(file);
    fs::write(&ballast, vec![0; MEGABYTE]).unwrap();
    let store = open(file).await;
    let large = || NewJob { payload: payload(3_000), ..job("t") };
    let mut acknowledged = HashSet::new();
    // What fails may leave room for something smaller, so one refusal need not be the last word.
    let mut refused = 0;
    while refused < 10 {
        let calls = (0..4).map(|_| {
            let store = store.clone();
            async move { store.enqueue_job(large()).await }
        });
        for answer in together(calls).await {
            match answer {
                Ok(enqueued) => assert!(acknowledged.insert(enqueued.id)),
                Err(error) => {
                    assert_disk_full(&error, file);
                    refused += 1;
                }
            }
        }
    }
    println!("{} acknowledged before the disk was full", acknowledged.len());
    assert!(acknowledged.len() > 100, "the disk was full from the beginning");

    // Readers, old and new, go on.
    let connection = connect(file);
    assert_eq!(ids(&connection), acknowledged, "what is there is what was acknowledged");
    books::assert_balanced(&connection);
    books::assert_sound(&connection);
    for id in acknowledged.iter().take(10) {
        let job = store.job(*id).await.unwrap().expect("an acknowledged job");
        assert_eq!((job.state, job.payload), (JobState::Pending, payload(3_000)));
    }
    let depths = store.queue_depths(&PageRequest::first(10)).await.unwrap().items;
    assert_eq!(depths[0].counts[&JobState::Pending], acknowledged.len() as u64);

    fs::remove_file(ballast).unwrap();
    acknowledged.insert(enqueue(&store, large()).await);
    let tokens = claim_all(&store).await;
    assert_eq!(tokens.iter().map(|token| token.job).collect::<HashSet<_>>(), acknowledged);
    assert!(complete(&store, &tokens).await.iter().all(|answer| *answer == Ok(JobState::Completed)));
    books::assert_balanced(&connection);
    books::assert_sound(&connection);
}

#[test]
fn a_call_too_large_for_the_disk_is_refused_and_those_that_shared_its_commit_are_told_the_truth() {
    in_a_namespace("one large call among small ones");
}

#[test]
fn a_call_too_large_for_memory_and_disk_is_refused_and_those_that_shared_its_commit_are_told_the_truth() {
    in_a_namespace("one huge call among small ones");
}

async fn one_large_call_among_small_ones(file: &Path, megabytes: usize) {
    mount_small_disk(file);
    let store = open(file).await;
    let first = enqueue(&store, job("t")).await;
    let holder = Holder::new(file);
    let small = |name: usize| {
        let store = store.clone();
        let job = NewJob { correlation_id: Some(name.to_string()), ..job("t") };
        async move { store.enqueue_jobs(vec![job]).await }
    };
    let before: Vec<_> = (0..20).map(|i| tokio::spawn(small(i))).collect();
    let large = NewJob { payload: payload(MEGABYTE), ..job("large") };
    let call = store.clone();
    let large = tokio::spawn(async move { call.enqueue_jobs(vec![large; megabytes]).await });
    let after: Vec<_> = (20..40).map(|i| tokio::spawn(small(i))).collect();
    holder.release();

    assert_disk_full(&large.await.unwrap().expect_err("the disk is smaller"), file);
    let mut expected = HashSet::from([first]);
    for call in before.into_iter().chain(after) {
        match call.await.unwrap() {
            Ok(enqueued) => assert!(expected.insert(enqueued[0].id)),
            Err(error) => assert_disk_full(&error, file),
        }
    }
    println!("{} of 40 small calls were carried out", expected.len() - 1);
    let connection = connect(file);
    assert_eq!(ids(&connection), expected, "whoever was told of a job has one, and nobody else");
    books::assert_balanced(&connection);
    books::assert_sound(&connection);

    // What the large call took of the disk is there for small ones.
    expected.insert(enqueue(&store, job("t")).await);
    assert_eq!(ids(&connection), expected);
}

#[test]
fn a_file_cannot_be_made_on_a_full_disk_and_can_once_there_is_space() {
    in_a_namespace("open on a full disk");
}

async fn open_on_a_full_disk(file: &Path) {
    let ballast = mount_small_disk(file);
    // Full from the start, and full in the middle of making the tables.
    for free in [0, 4, 8, 16, 40, 80] {
        fs::write(&ballast, vec![0; 3 * MEGABYTE - free * 1024]).unwrap();
        let error = SqliteStore::open(options(file)).await.expect_err("no room for the tables");
        let text = error.to_string();
        assert!(matches!(error, StoreError::Unavailable(_)), "with {free} kB: {error:?}");
        assert!(text.contains(file.to_str().unwrap()) && text.contains("full"), "with {free} kB: {text}");
        fs::remove_file(&ballast).unwrap();
    }
    let store = open(file).await;
    enqueue(&store, job("t")).await;
    let connection = connect(file);
    assert_eq!(number(&connection, "SELECT count(*) FROM migration"), i64::from(SCHEMA_VERSION));
    books::assert_sound(&connection);
}

#[test]
fn a_read_only_directory_is_refused_by_name() {
    in_a_namespace("read-only directory");
}

#[test]
fn a_read_only_file_is_refused_by_name() {
    in_a_namespace("read-only file");
}

/// Opens what is and then is not read-only: the file that is there, or its directory.
async fn read_only(file: &Path, target: &Path) {
    let store = open(file).await;
    let id = enqueue(&store, job("t")).await;
    close(store, file).await;
    let before = fs::read(file).unwrap();
    let target_text = target.to_str().unwrap();
    run("mount", &["--bind", target_text, target_text]);
    run("mount", &["-o", "remount,bind,ro", target_text]);

    let refused = |error: StoreError| {
        let StoreError::Backend(_) = &error else { panic!("trying again will not mend it: {error:?}") };
        let text = error.to_string();
        assert!(text.contains(file.to_str().unwrap()), "does not say where: {text}");
        assert!(text.contains("write") || text.contains("writable"), "does not say what to do: {text}");
        println!("{text}");
    };
    refused(SqliteStore::open(options(file)).await.expect_err("a file that may not be written"));
    if target != file {
        let absent = file.with_file_name("absent.db");
        let error = SqliteStore::open(options(&absent)).await.expect_err("a file that may not be made");
        assert!(error.to_string().contains(absent.to_str().unwrap()), "{error}");
    }
    assert_eq!(fs::read(file).unwrap(), before, "it was left as it was");

    run("umount", &[target_text]);
    let store = open(file).await;
    assert_eq!(claim(&store, 10).await[0].job, id, "all is as it was");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_another_holds_for_too_long_is_unavailable_and_work_goes_on_when_it_is_let_go() {
    let folder = Folder::new();
    let patience = Duration::from_millis(300);
    let options = SqliteOptions { busy_timeout: patience, ..SqliteOptions::new(folder.file()) };
    let store = SqliteStore::open(options.clone()).await.unwrap();
    let id = enqueue(&store, job("t")).await;
    let holder = Holder::new(&folder.file());

    let begun = Instant::now();
    let many = together((0..8).map(|_| {
        let store = store.clone();
        async move { store.enqueue_job(job("t")).await }
    }));
    for answer in many.await {
        assert_held(&answer.expect_err("the file is held"), &folder.file());
    }
    let error = store.claim_jobs(&ClaimRequest::any(worker("w"), 1)).await.expect_err("the file is held");
    assert_held(&error, &folder.file());
    let waited = begun.elapsed();
    assert!(waited >= patience && waited < LIMIT, "after {waited:?}");
    assert_eq!(store.job(id).await.unwrap().expect("a job").state, JobState::Pending, "readers do not wait");
    assert_eq!(store.queue_depths(&PageRequest::first(10)).await.unwrap().items[0].counts[&JobState::Pending], 1);
    // A file that is held can still be opened: there is nothing to be written.
    SqliteStore::open(options).await.expect("a second store");

    holder.release();
    enqueue(&store, job("t")).await;
    assert_eq!(claim(&store, 10).await.len(), 2, "what was refused was not recorded");
    books::assert_balanced(&connect(&folder.file()));
}

#[tokio::test]
async fn a_file_that_another_keeps_for_itself_cannot_be_opened_and_can_when_it_is_let_go() {
    let folder = Folder::new();
    let options = SqliteOptions { busy_timeout: Duration::from_millis(300), ..SqliteOptions::new(folder.file()) };
    for there in [false, true] {
        let holder = connect(&folder.file());
        if there {
            // Neither read nor written by anybody else, in write-ahead mode as in every other.
            holder
                .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; CREATE TABLE t (x); ROLLBACK")
                .unwrap();
        } else {
            holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
        }
        let begun = Instant::now();
        let error = SqliteStore::open(options.clone()).await.expect_err("the file is held");
        assert_held(&error, &folder.file());
        assert!(begun.elapsed() < LIMIT, "after {:?}", begun.elapsed());
        drop(holder);
        let store = SqliteStore::open(options.clone()).await.expect("a store, once the file was let go");
        enqueue(&store, job("t")).await;
        close(store, &folder.file()).await;
    }
}

fn assert_held(error: &StoreError, file: &Path) {
    let StoreError::Unavailable(text) = error else { panic!("not what a caller would wait out: {error:?}") };
    assert!(text.contains(file.to_str().unwrap()), "does not say where: {text}");
    assert!(text.contains("database is locked: another process has held the file for too long"), "{text}");
}

/// Everything in a folder, byte for byte, except what SQLite keeps beside a file while it is open.
fn contents(folder: &Folder) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| !path.to_str().unwrap().ends_with("-shm"));
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Opens what is not to be opened: refused for a reason that names the file, which is left as it was.
async fn refused(folder: &Folder) -> StoreError {
    let before = contents(folder);
    let error = SqliteStore::open(options(&folder.file())).await.expect_err("not a file of this program");
    assert!(error.to_string().contains(folder.file().to_str().unwrap()), "does not say where: {error}");
    assert_eq!(contents(folder), before, "the file was changed");
    error
}

#[tokio::test]
async fn a_file_of_text_is_refused_and_left_as_it_was() {
    for text in ["hi".to_owned(), "Dear diary,\n".repeat(1_000), "SQLite format 3".to_owned()] {
        let folder = Folder::new();
        fs::write(folder.file(), text).unwrap();
        let error = refused(&folder).await;
        assert!(matches!(error, StoreError::Backend(_)), "{error:?}");
        assert!(error.to_string().contains("file is not a database: choose another path"), "{error}");
    }
}

#[tokio::test]
async fn the_database_of_another_program_is_refused_and_left_as_it_was() {
    for mode in ["DELETE", "WAL"] {
        let folder = Folder::new();
        let other = connect(&folder.file());
        other.pragma_update(None, "journal_mode", mode).unwrap();
        other.execute_batch("CREATE TABLE job (id INTEGER); INSERT INTO job VALUES (1)").unwrap();
        // While the other program is at work, and when it has closed its file.
        let mut other = Some(other);
        for _ in 0..2 {
            let error = refused(&folder).await;
            let StoreError::Schema(text) = &error else { panic!("{error:?}") };
            assert!(text.contains("is the database of another program: choose another path"), "{text}");
            drop(other.take());
        }
        assert_eq!(number(&connect(&folder.file()), "SELECT count(*) FROM job"), 1);
    }
    // Nothing in it yet, but marked as somebody's.
    let folder = Folder::new();
    connect(&folder.file()).pragma_update(None, "application_id", 42).unwrap();
    assert!(matches!(refused(&folder).await, StoreError::Schema(_)));
}

#[tokio::test]
async fn a_schema_that_is_newer_than_the_program_is_refused_and_left_as_it_was() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    enqueue(&store, job("t")).await;
    close(store, &folder.file()).await;
    let connection = connect(&folder.file());
    connection.execute_batch("INSERT INTO migration (version, name, applied_at) VALUES (999, 'future', 0)").unwrap();
    drop(connection);
    let error = refused(&folder).await;
    let StoreError::Schema(text) = &error else { panic!("{error:?}") };
    assert_eq!(
        *text,
        format!(
            "{} has schema version 999, this program knows {SCHEMA_VERSION}: run a newer orchestrix",
            folder.file().display()
        )
    );
}

#[tokio::test]
async fn a_missing_directory_and_a_directory_in_place_of_the_file_are_named() {
    let folder = Folder::new();
    for path in [folder.path().join("missing").join("jobs.db"), folder.path().to_owned()] {
        let error = SqliteStore::open(SqliteOptions::new(&path)).await.expect_err("there is no file there");
        let StoreError::Backend(_) = &error else { panic!("trying again will not mend it: {error:?}") };
        let text = error.to_string();
        assert!(text.contains(path.to_str().unwrap()), "does not say where: {text}");
        assert!(text.contains("does its directory exist"), "does not say what to look for: {text}");
    }
    assert_eq!(contents(&folder), [], "nothing was made");
}

#[tokio::test]
async fn of_sixty_four_calls_that_share_commits_those_that_are_refused_fail_alone() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let known = enqueue(&store, keyed("known")).await;
    let connection = connect(&folder.file());
    // Fails when the row of the job has been written already.
    connection
        .execute_batch(
            "CREATE TRIGGER poison BEFORE INSERT ON payload WHEN new.body LIKE '%poison%'
             BEGIN SELECT RAISE(ABORT, 'poisoned'); END",
        )
        .unwrap();
    let before = wal::commits(&folder.file());
    let holder = Holder::new(&folder.file());
    let call = |i: u128| {
        let store = store.clone();
        let nobody = JobId::from_uuid(Uuid::from_u128(i));
        async move {
            match i % 8 {
                0 => store.enqueue_job(child_of(&[nobody])).await.map(|enqueued| enqueued.id),
                1 => {
                    let other = NewJob { payload: payload(20), ..keyed("known") };
                    store.enqueue_job(other).await.map(|enqueued| enqueued.id)
                }
                2 => {
                    let text = format!("\"poison{}\"", "x".repeat(600));
                    let poison = NewJob { payload: Json::trusted(&text), ..job("t") };
                    store.enqueue_jobs(vec![job("t"), poison]).await.map(|enqueued| enqueued[0].id)
                }
                3 => store.cancel_job(nobody).await.map(|_| nobody),
                4 => {
                    let token = LeaseToken { job: known, counter: 1, secret: Uuid::from_u128(i) };
                    let answers = store.finish_attempts(vec![OutcomeReport { token, outcome: Outcome::DONE }]).await?;
                    assert_eq!(answers, [Err(FinishError::LeaseLost)]);
                    Err(StoreError::LeaseLost)
                }
                _ => store.enqueue_job(NewJob { payload: payload(600), ..job("t") }).await.map(|enqueued| enqueued.id),
            }
        }
    };
    let calls: Vec<_> = (0..64).map(|i| tokio::spawn(call(i))).collect();
    // All of them are in line when the file is let go: this thread runs them all, each until it waits.
    tokio::task::yield_now().await;
    holder.release();
    let mut recorded = HashSet::from([known]);
    for (i, call) in calls.into_iter().enumerate() {
        match (i % 8, call.await.unwrap()) {
            (0, Err(StoreError::Invalid(_)))
            | (3, Err(StoreError::JobNotFound(_)))
            | (4, Err(StoreError::LeaseLost)) => {}
            (1, Err(StoreError::IdempotencyKeyReused { existing })) => assert_eq!(existing, known),
            (2, Err(StoreError::Backend(error))) => assert!(error.to_string().contains("poisoned"), "{error}"),
            (5.., Ok(id)) => assert!(recorded.insert(id)),
            (kind, outcome) => panic!("call {i} of kind {kind}: {outcome:?}"),
        }
    }
    assert_eq!(recorded.len(), 1 + 24);
    assert_eq!(ids(&connection), recorded, "whoever was told of a job has one, and nobody else");
    assert_eq!(number(&connection, "SELECT n FROM depth WHERE state = 'pending'"), 25);
    books::assert_balanced(&connection);
    let commits = wal::commits(&folder.file()) - before;
    println!("{commits} commits");
    assert!(commits < 24, "they did not share commits: {commits}");
}

#[tokio::test]
async fn when_all_of_a_commit_is_undone_everybody_in_it_is_told_so() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let connection = connect(&folder.file());
    // As some failures of a disk do.
    connection
        .execute_batch(
            "CREATE TRIGGER poison BEFORE INSERT ON job WHEN new.job_type = 'poison'
             BEGIN SELECT RAISE(ROLLBACK, 'poisoned'); END",
        )
        .unwrap();
    let holder = Holder::new(&folder.file());
    let call = |i: usize| {
        let store = store.clone();
        async move { store.enqueue_job(job(if i == 32 { "poison" } else { "t" })).await }
    };
    let calls: Vec<_> = (0..64).map(|i| tokio::spawn(call(i))).collect();
    tokio::task::yield_now().await;
    holder.release();
    let mut recorded = HashSet::new();
    let mut refused = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(enqueued) => assert!(recorded.insert(enqueued.id)),
            Err(StoreError::Unavailable(text)) => {
                assert!(text.contains("nothing was written"), "{text}");
                refused += 1;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    println!("{refused} refused");
    assert!(refused > 1, "nobody shared its commit");
    assert_eq!(ids(&connection), recorded, "whoever was told of a job has one, and nobody else");
    books::assert_balanced(&connection);
    enqueue(&store, job("t")).await;
}
