//! A full disk, a read-only file, a file that another process has locked, a file of another program: every caller gets
//! an error that says what happened and what to do, and no write is left incomplete.
//!
//! The tests mount small and read-only disks in a mount namespace of their own. That needs root, or a system that
//! grants such namespaces to users. Without either, these tests fail rather than prove nothing.

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
    consistency,
    jobs::*,
    process::{self, Process, report},
    support::{Folder, TIMEOUT, WriteLock, close, connect, number, open, options},
    wal,
};

const MEGABYTE: usize = 1024 * 1024;

/// Runs a task of [`inside`] in a process with a private mount namespace.
fn in_a_namespace(task: &str) {
    let folder = Folder::new();
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let program: &[&str] =
        if root { &["unshare", "--mount", "--"] } else { &["unshare", "--map-root-user", "--mount", "--"] };
    let process = Process::start_by(program, "faults::inside", task, &folder.file());
    // The task reports its own name at its end.
    assert_eq!(process.finish(), [task]);
}

/// Not a test: the body of the tests that need their own disks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs only as the process that other tests start"]
async fn inside() {
    let Some((task, file)) = process::assignment() else { return };
    println!();
    match task.as_str() {
        "fill the disk" => fill_the_disk(&file).await,
        "one large call among small ones" => one_large_call_among_small_ones(&file, 6).await,
        // More than fits into the page cache of the writer, so that it fails in the middle of a statement.
        "one huge call among small ones" => one_large_call_among_small_ones(&file, 90).await,
        "open on a full disk" => open_on_a_full_disk(&file).await,
        "read-only directory" => read_only(&file, file.parent().unwrap()).await,
        "read-only file" => read_only(&file, &file).await,
        other => panic!("unknown task {other}"),
    }
    report(task);
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().expect(program);
    assert!(status.success(), "{program} {arguments:?}: {status}");
}

/// Mounts a disk of three megabytes for `file`. Returns the path of a file to fill it with.
fn mount_small_disk(file: &Path) -> PathBuf {
    let folder = file.parent().unwrap();
    run("mount", &["-t", "tmpfs", "-o", "size=3m", "tmpfs", folder.to_str().unwrap()]);
    folder.join("ballast")
}

fn assert_disk_full(error: &StoreError, file: &Path) {
    let StoreError::Unavailable(text) = error else { panic!("the error should be transient: {error:?}") };
    assert!(text.contains(file.to_str().unwrap()), "no path: {text}");
    assert!(text.contains("disk is full"), "no cause: {text}");
    assert!(text.contains("nothing was written"), "no effect: {text}");
}

#[test]
fn a_full_disk_refuses_calls_keeps_acknowledged_writes_and_recovers() {
    in_a_namespace("fill the disk");
}

async fn fill_the_disk(file: &Path) {
    let ballast = mount_small_disk(file);
    fs::write(&ballast, vec![0; MEGABYTE]).unwrap();
    let store = open(file).await;
    let large = || NewJob { payload: payload(3_000), ..job("t") };
    let mut acknowledged = HashSet::new();
    // A failed call may leave room for a smaller one, so one refusal does not mean that the disk is full for all.
    let mut refused = 0;
    while refused < 10 {
        let calls = (0..4).map(|_| {
            let store = store.clone();
            async move { store.enqueue_job(large()).await }
        });
        for result in run_concurrently(calls).await {
            match result {
                Ok(enqueued) => assert!(acknowledged.insert(enqueued.id)),
                Err(error) => {
                    assert_disk_full(&error, file);
                    refused += 1;
                }
            }
        }
    }
    println!("{} acknowledged before the disk was full", acknowledged.len());
    assert!(acknowledged.len() > 100, "the disk was full from the start");

    // Existing and new readers work.
    let connection = connect(file);
    assert_eq!(ids(&connection), acknowledged, "the file holds exactly the acknowledged jobs");
    consistency::assert_consistent(&connection);
    consistency::assert_intact(&connection);
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
    assert!(complete(&store, &tokens).await.iter().all(|result| *result == Ok(JobState::Completed)));
    consistency::assert_consistent(&connection);
    consistency::assert_intact(&connection);
}

#[test]
fn a_call_too_large_for_the_disk_fails_and_the_calls_of_its_commit_get_true_results() {
    in_a_namespace("one large call among small ones");
}

#[test]
fn a_call_too_large_for_cache_and_disk_fails_and_the_calls_of_its_commit_get_true_results() {
    in_a_namespace("one huge call among small ones");
}

async fn one_large_call_among_small_ones(file: &Path, megabytes: usize) {
    mount_small_disk(file);
    let store = open(file).await;
    let first = enqueue(&store, job("t")).await;
    let lock = WriteLock::new(file);
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
    lock.release();

    assert_disk_full(&large.await.unwrap().expect_err("the disk is smaller"), file);
    let mut expected = HashSet::from([first]);
    for call in before.into_iter().chain(after) {
        match call.await.unwrap() {
            Ok(enqueued) => assert!(expected.insert(enqueued[0].id)),
            Err(error) => assert_disk_full(&error, file),
        }
    }
    println!("{} of 40 small calls succeeded", expected.len() - 1);
    let connection = connect(file);
    assert_eq!(ids(&connection), expected, "a job exists exactly if its caller got an id");
    consistency::assert_consistent(&connection);
    consistency::assert_intact(&connection);

    // The space of the large call is free again.
    expected.insert(enqueue(&store, job("t")).await);
    assert_eq!(ids(&connection), expected);
}

#[test]
fn a_full_disk_refuses_a_new_file_and_recovers() {
    in_a_namespace("open on a full disk");
}

async fn open_on_a_full_disk(file: &Path) {
    let ballast = mount_small_disk(file);
    // Full from the start, and full while the tables are created.
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
    consistency::assert_intact(&connection);
}

#[test]
fn a_read_only_directory_is_refused_with_its_path() {
    in_a_namespace("read-only directory");
}

#[test]
fn a_read_only_file_is_refused_with_its_path() {
    in_a_namespace("read-only file");
}

/// Opens an existing file while `target`, the file or its directory, is read-only, and again when it is writable.
async fn read_only(file: &Path, target: &Path) {
    let store = open(file).await;
    let id = enqueue(&store, job("t")).await;
    close(store, file).await;
    let before = fs::read(file).unwrap();
    let target_text = target.to_str().unwrap();
    run("mount", &["--bind", target_text, target_text]);
    run("mount", &["-o", "remount,bind,ro", target_text]);

    let refused = |error: StoreError| {
        let StoreError::Backend(_) = &error else { panic!("the error should be permanent: {error:?}") };
        let text = error.to_string();
        assert!(text.contains(file.to_str().unwrap()), "no path: {text}");
        assert!(text.contains("write") || text.contains("writable"), "no advice: {text}");
        println!("{text}");
    };
    refused(SqliteStore::open(options(file)).await.expect_err("the file is read-only"));
    if target != file {
        let absent = file.with_file_name("absent.db");
        let error = SqliteStore::open(options(&absent)).await.expect_err("the directory is read-only");
        assert!(error.to_string().contains(absent.to_str().unwrap()), "{error}");
    }
    assert_eq!(fs::read(file).unwrap(), before, "the file was changed");

    run("umount", &[target_text]);
    let store = open(file).await;
    assert_eq!(claim(&store, 10).await[0].job, id, "the job is still there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_file_is_unavailable_after_the_timeout_and_works_once_unlocked() {
    let folder = Folder::new();
    let timeout = Duration::from_millis(300);
    let options = SqliteOptions { busy_timeout: timeout, ..SqliteOptions::new(folder.file()) };
    let store = SqliteStore::open(options.clone()).await.unwrap();
    let id = enqueue(&store, job("t")).await;
    let lock = WriteLock::new(&folder.file());

    let begun = Instant::now();
    let many = run_concurrently((0..8).map(|_| {
        let store = store.clone();
        async move { store.enqueue_job(job("t")).await }
    }));
    for result in many.await {
        assert_locked(&result.expect_err("the file is locked"), &folder.file());
    }
    let error = store.claim_jobs(&ClaimRequest::any(worker("w"), 1)).await.expect_err("the file is locked");
    assert_locked(&error, &folder.file());
    let waited = begun.elapsed();
    assert!(waited >= timeout && waited < TIMEOUT, "after {waited:?}");
    assert_eq!(store.job(id).await.unwrap().expect("a job").state, JobState::Pending, "reads need no lock");
    assert_eq!(store.queue_depths(&PageRequest::first(10)).await.unwrap().items[0].counts[&JobState::Pending], 1);
    // A locked file can be opened, because opening it writes nothing.
    SqliteStore::open(options).await.expect("a second store");

    lock.release();
    enqueue(&store, job("t")).await;
    assert_eq!(claim(&store, 10).await.len(), 2, "refused calls left no jobs");
    consistency::assert_consistent(&connect(&folder.file()));
}

#[tokio::test]
async fn an_exclusively_locked_file_cannot_be_opened_and_opens_once_unlocked() {
    let folder = Folder::new();
    let options = SqliteOptions { busy_timeout: Duration::from_millis(300), ..SqliteOptions::new(folder.file()) };
    for exists in [false, true] {
        let lock = connect(&folder.file());
        if exists {
            // No other connection can read or write, not even in write-ahead mode.
            lock.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; CREATE TABLE t (x); ROLLBACK")
                .unwrap();
        } else {
            lock.execute_batch("BEGIN EXCLUSIVE").unwrap();
        }
        let begun = Instant::now();
        let error = SqliteStore::open(options.clone()).await.expect_err("the file is locked");
        assert_locked(&error, &folder.file());
        assert!(begun.elapsed() < TIMEOUT, "after {:?}", begun.elapsed());
        drop(lock);
        let store = SqliteStore::open(options.clone()).await.expect("a store, once the file is unlocked");
        enqueue(&store, job("t")).await;
        close(store, &folder.file()).await;
    }
}

fn assert_locked(error: &StoreError, file: &Path) {
    let StoreError::Unavailable(text) = error else { panic!("the error should be transient: {error:?}") };
    assert!(text.contains(file.to_str().unwrap()), "no path: {text}");
    assert!(text.contains("database is locked: another process has held the file for too long"), "{text}");
}

/// All files of a folder with their bytes, except the shared-memory file of SQLite.
fn contents(folder: &Folder) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| !path.to_str().unwrap().ends_with("-shm"));
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// Opens a file that must be refused. Checks that the error names the file and that the file is unchanged.
async fn refused(folder: &Folder) -> StoreError {
    let before = contents(folder);
    let error = SqliteStore::open(options(&folder.file())).await.expect_err("the file must be refused");
    assert!(error.to_string().contains(folder.file().to_str().unwrap()), "no path: {error}");
    assert_eq!(contents(folder), before, "the file was changed");
    error
}

#[tokio::test]
async fn a_text_file_is_refused_and_not_changed() {
    for text in ["hi".to_owned(), "Dear diary,\n".repeat(1_000), "SQLite format 3".to_owned()] {
        let folder = Folder::new();
        fs::write(folder.file(), text).unwrap();
        let error = refused(&folder).await;
        assert!(matches!(error, StoreError::Backend(_)), "{error:?}");
        assert!(error.to_string().contains("file is not a database: choose another path"), "{error}");
    }
}

#[tokio::test]
async fn the_database_of_another_program_is_refused_and_not_changed() {
    for mode in ["DELETE", "WAL"] {
        let folder = Folder::new();
        let other = connect(&folder.file());
        other.pragma_update(None, "journal_mode", mode).unwrap();
        other.execute_batch("CREATE TABLE job (id INTEGER); INSERT INTO job VALUES (1)").unwrap();
        // While the other program has it open, and after it has closed it.
        let mut other = Some(other);
        for _ in 0..2 {
            let error = refused(&folder).await;
            let StoreError::Schema(text) = &error else { panic!("{error:?}") };
            assert!(text.contains("is the database of another program: choose another path"), "{text}");
            drop(other.take());
        }
        assert_eq!(number(&connect(&folder.file()), "SELECT count(*) FROM job"), 1);
    }
    // Empty, but marked with the id of another program.
    let folder = Folder::new();
    connect(&folder.file()).pragma_update(None, "application_id", 42).unwrap();
    assert!(matches!(refused(&folder).await, StoreError::Schema(_)));
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_not_changed() {
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
async fn a_missing_directory_and_a_directory_instead_of_a_file_are_refused_with_their_path() {
    let folder = Folder::new();
    for path in [folder.path().join("missing").join("jobs.db"), folder.path().to_owned()] {
        let error = SqliteStore::open(SqliteOptions::new(&path)).await.expect_err("the path is not a file");
        let StoreError::Backend(_) = &error else { panic!("the error should be permanent: {error:?}") };
        let text = error.to_string();
        assert!(text.contains(path.to_str().unwrap()), "no path: {text}");
        assert!(text.contains("does its directory exist"), "no advice: {text}");
    }
    assert_eq!(contents(&folder), [], "nothing was created");
}

#[tokio::test]
async fn refused_calls_fail_alone_among_sixty_four_calls_that_share_commits() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let known = enqueue(&store, keyed("known")).await;
    let connection = connect(&folder.file());
    // Fails after the row of the job was written.
    connection
        .execute_batch(
            "CREATE TRIGGER poison BEFORE INSERT ON payload WHEN new.body LIKE '%poison%'
             BEGIN SELECT RAISE(ABORT, 'poisoned'); END",
        )
        .unwrap();
    let before = wal::commits(&folder.file());
    let lock = WriteLock::new(&folder.file());
    let call = |i: u128| {
        let store = store.clone();
        let unknown = JobId::from_uuid(Uuid::from_u128(i));
        async move {
            match i % 8 {
                0 => store.enqueue_job(child_of(&[unknown])).await.map(|enqueued| enqueued.id),
                1 => {
                    let other = NewJob { payload: payload(20), ..keyed("known") };
                    store.enqueue_job(other).await.map(|enqueued| enqueued.id)
                }
                2 => {
                    let text = format!("\"poison{}\"", "x".repeat(600));
                    let poison = NewJob { payload: Json::trusted(&text), ..job("t") };
                    store.enqueue_jobs(vec![job("t"), poison]).await.map(|enqueued| enqueued[0].id)
                }
                3 => store.cancel_job(unknown).await.map(|_| unknown),
                4 => {
                    let token = LeaseToken { job: known, counter: 1, secret: Uuid::from_u128(i) };
                    let results = store.finish_attempts(vec![OutcomeReport { token, outcome: Outcome::DONE }]).await?;
                    assert_eq!(results, [Err(FinishError::LeaseLost)]);
                    Err(StoreError::LeaseLost)
                }
                _ => store.enqueue_job(NewJob { payload: payload(600), ..job("t") }).await.map(|enqueued| enqueued.id),
            }
        }
    };
    let calls: Vec<_> = (0..64).map(|i| tokio::spawn(call(i))).collect();
    // This single thread runs each call until it waits, so all of them are queued before the file is unlocked.
    tokio::task::yield_now().await;
    lock.release();
    let mut enqueued_ids = HashSet::from([known]);
    for (i, call) in calls.into_iter().enumerate() {
        match (i % 8, call.await.unwrap()) {
            (0, Err(StoreError::Invalid(_)))
            | (3, Err(StoreError::JobNotFound(_)))
            | (4, Err(StoreError::LeaseLost)) => {}
            (1, Err(StoreError::IdempotencyKeyReused { existing })) => assert_eq!(existing, known),
            (2, Err(StoreError::Backend(error))) => assert!(error.to_string().contains("poisoned"), "{error}"),
            (5.., Ok(id)) => assert!(enqueued_ids.insert(id)),
            (kind, outcome) => panic!("call {i} of kind {kind}: {outcome:?}"),
        }
    }
    assert_eq!(enqueued_ids.len(), 1 + 24);
    assert_eq!(ids(&connection), enqueued_ids, "a job exists exactly if its caller got an id");
    assert_eq!(number(&connection, "SELECT n FROM depth WHERE state = 'pending'"), 25);
    consistency::assert_consistent(&connection);
    let commits = wal::commits(&folder.file()) - before;
    println!("{commits} commits");
    assert!(commits < 24, "too many commits: {commits}");
}

#[tokio::test]
async fn a_rolled_back_commit_fails_every_call_in_it() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let connection = connect(&folder.file());
    // Rolls back the whole transaction, as some disk errors do.
    connection
        .execute_batch(
            "CREATE TRIGGER poison BEFORE INSERT ON job WHEN new.job_type = 'poison'
             BEGIN SELECT RAISE(ROLLBACK, 'poisoned'); END",
        )
        .unwrap();
    let lock = WriteLock::new(&folder.file());
    let call = |i: usize| {
        let store = store.clone();
        async move { store.enqueue_job(job(if i == 32 { "poison" } else { "t" })).await }
    };
    let calls: Vec<_> = (0..64).map(|i| tokio::spawn(call(i))).collect();
    tokio::task::yield_now().await;
    lock.release();
    let mut enqueued_ids = HashSet::new();
    let mut refused = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(enqueued) => assert!(enqueued_ids.insert(enqueued.id)),
            Err(StoreError::Unavailable(text)) => {
                assert!(text.contains("nothing was written"), "{text}");
                refused += 1;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    println!("{refused} refused");
    assert!(refused > 1, "no other call shared its commit");
    assert_eq!(ids(&connection), enqueued_ids, "a job exists exactly if its caller got an id");
    consistency::assert_consistent(&connection);
    enqueue(&store, job("t")).await;
}
