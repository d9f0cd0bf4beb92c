//! Calls that wait for the job's row: refused if the lease was lost meanwhile, accepted if it was kept.

use std::time::Duration;

use orchestrix_core::{JobState, LeaseToken};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{
    Fence, FinishError, LeaseStatus, LogLevel, LogLine, Outcome, PageRequest, ProgressUpdate, StoreError, prelude::*,
};
use orchestrix_testkit::TestDatabase;
use tokio_postgres::Client;

use crate::{
    invariants,
    jobs::*,
    locks::{LockHolder, until_waiting, waiting},
    support,
};

/// Changes in another transaction that lose a lease.
const LEASED_AGAIN: &str =
    "UPDATE orchestrix.job SET lease_counter = lease_counter + 1, lease_secret = gen_random_uuid(), worker = 'other'";
const COUNTER_ONLY: &str = "UPDATE orchestrix.job SET lease_counter = lease_counter + 1";
const SECRET_ONLY: &str = "UPDATE orchestrix.job SET lease_secret = gen_random_uuid()";
const REAPED: &str = "UPDATE orchestrix.job SET state = 'pending', lease_expires_at = NULL;
    INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
    SELECT rank, eligible_at, id, queue, job_type, tenant, orchestrix.ring_position(tenant), ARRAY[id] FROM orchestrix.job;
    INSERT INTO orchestrix.depth_delta VALUES ('running', '{default}', '{-1}'), ('pending', '{default}', '{1}')";
const REDRIVEN: &str = "CREATE TEMP TABLE moving ON COMMIT DROP AS SELECT * FROM orchestrix.job;
    DELETE FROM orchestrix.job;
    UPDATE moving SET state = 'pending', lease_expires_at = NULL;
    INSERT INTO orchestrix.job SELECT * FROM moving;
    INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
    SELECT rank, eligible_at, id, queue, job_type, tenant, orchestrix.ring_position(tenant), ARRAY[id] FROM orchestrix.job;
    INSERT INTO orchestrix.depth_delta VALUES ('running', '{default}', '{-1}'), ('pending', '{default}', '{1}')";
const LOST: [&str; 5] = [LEASED_AGAIN, COUNTER_ONLY, SECRET_ONLY, REAPED, REDRIVEN];

/// A change that extends it.
const EXTENDED: &str = "UPDATE orchestrix.job SET lease_expires_at = now() + interval '30 seconds'";

struct Scene {
    database: TestDatabase,
    store: PostgresStore,
    client: Client,
    token: LeaseToken,
}

impl Scene {
    /// A scene with one claimed job.
    async fn new() -> Self {
        let database = support::database();
        let store = open(database.url()).await;
        let client = support::connect(database.url()).await;
        let token = start(&store, job("t")).await.token;
        Self { database, store, client, token }
    }

    /// Empties the tables and starts over.
    async fn reset(&mut self) {
        let sql = "TRUNCATE orchestrix.job, orchestrix.ready, orchestrix.history, orchestrix.dead, orchestrix.log, orchestrix.depth, orchestrix.depth_delta";
        self.client.execute(sql, &[]).await.unwrap();
        self.token = start(&self.store, job("t")).await.token;
    }

    /// Expires the lease.
    async fn expire(&self) {
        let sql = "UPDATE orchestrix.job SET lease_expires_at = now() - interval '1 second'";
        self.client.execute(sql, &[]).await.unwrap();
    }

    /// Calls the store while `change` is uncommitted, and commits it once the call waits. Returns the answer of the
    /// call and the rows that the change alone leaves.
    async fn call_during<T: Send + 'static>(
        &self,
        change: &str,
        call: impl Future<Output = T> + Send + 'static,
    ) -> (T, String) {
        let holder = LockHolder::with(self.database.url(), change).await;
        let call = tokio::spawn(call);
        until_waiting(&self.client, 1).await;
        let left = all_rows(holder.client()).await;
        holder.commit().await;
        (call.await.unwrap(), left)
    }
}

/// All rows of the job and its logs, as the connection's transaction sees them.
async fn all_rows(client: &Client) -> String {
    let sql = "SELECT jsonb_build_array((SELECT jsonb_agg(j) FROM orchestrix.job j), (SELECT jsonb_agg(h) FROM orchestrix.history h),
        (SELECT jsonb_agg(d) FROM orchestrix.dead d), (SELECT jsonb_agg(l) FROM orchestrix.log l))::text";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

fn finishing(scene: &Scene, outcome: Outcome) -> impl Future<Output = Result<JobState, FinishError>> + Send + 'static {
    let (store, token) = (scene.store.clone(), scene.token);
    async move { finish(&store, token, outcome).await }
}

#[tokio::test]
async fn an_outcome_that_waited_while_its_lease_was_lost_is_refused_and_changes_nothing() {
    let mut scene = Scene::new().await;
    for change in LOST {
        for outcome in [Outcome::DONE, Outcome::fail("late"), fatal(), Outcome::Release, Outcome::Cancelled] {
            scene.reset().await;
            let (answer, left) = scene.call_during(change, finishing(&scene, outcome.clone())).await;
            assert_eq!(answer, Err(FinishError::LeaseLost), "{outcome:?} after {change}");
            assert_eq!(all_rows(&scene.client).await, left, "{outcome:?} after {change}");
            invariants::assert_consistent(&scene.client).await;
        }
    }
}

#[tokio::test]
async fn an_outcome_that_waited_while_its_lease_was_extended_is_accepted() {
    let mut scene = Scene::new().await;
    for (outcome, state) in [
        (Outcome::DONE, JobState::Completed),
        (Outcome::fail("once"), JobState::Retrying),
        (fatal(), JobState::Dead),
        (Outcome::Release, JobState::Pending),
    ] {
        scene.reset().await;
        // The lease has expired, but it is current until it is reaped.
        scene.expire().await;
        let (answer, _) = scene.call_during(EXTENDED, finishing(&scene, outcome)).await;
        assert_eq!(answer, Ok(state));
        assert_eq!(get(&scene.store, scene.token.job).await.state, state);
        invariants::assert_consistent(&scene.client).await;
    }
}

#[tokio::test]
async fn progress_that_waited_while_its_lease_was_lost_is_refused_and_changes_nothing() {
    let mut scene = Scene::new().await;
    for change in LOST {
        scene.reset().await;
        let (store, token) = (scene.store.clone(), scene.token);
        let update = ProgressUpdate { progress: None, checkpoint: Some(orchestrix_core::Json::trusted("1")) };
        let (answer, left) = scene.call_during(change, async move { store.record_progress(token, update).await }).await;
        assert!(matches!(answer, Err(StoreError::LeaseLost)), "{answer:?} after {change}");
        assert_eq!(all_rows(&scene.client).await, left, "after {change}");
    }
}

#[tokio::test]
async fn log_lines_that_waited_while_their_attempt_ended_are_refused() {
    let scene = Scene::new().await;
    // The end of the attempt has locked the row and waits at the insert.
    let holder = LockHolder::with_history_of(scene.database.url(), scene.token.job).await;
    let end = tokio::spawn(finishing(&scene, Outcome::DONE));
    until_waiting(&scene.client, 1).await;
    let (store, token) = (scene.store.clone(), scene.token);
    let lines = vec![LogLine { at: None, level: LogLevel::Info, message: "too late".into() }];
    let append = tokio::spawn(async move { store.append_logs(token, lines).await });
    until_waiting(&scene.client, 2).await;
    holder.rollback().await;
    assert_eq!(end.await.unwrap(), Ok(JobState::Completed));
    assert!(matches!(append.await.unwrap(), Err(StoreError::LeaseLost)));
    let lines: i64 = scene.client.query_one("SELECT count(*) FROM orchestrix.log", &[]).await.unwrap().get(0);
    assert_eq!(lines, 0);
}

async fn heartbeat(store: &PostgresStore, token: LeaseToken) -> LeaseStatus {
    store.extend_leases(&[token]).await.unwrap()[0]
}

async fn reaped(store: &PostgresStore, crash_loop: u16) -> usize {
    store.reap_leases(Fence::NONE, 100, crash_loop).await.unwrap().count
}

#[tokio::test]
async fn a_lease_that_is_being_extended_is_not_reaped() {
    let scene = Scene::new().await;
    scene.expire().await;
    let extending = LockHolder::with(scene.database.url(), EXTENDED).await;
    let store = scene.store.clone();
    let reaper = tokio::spawn(async move { reaped(&store, 3).await });
    until_stuck_or_done(&scene.client, &reaper, 0).await;
    extending.commit().await;
    assert_eq!(reaper.await.unwrap(), 0);
    assert!(matches!(heartbeat(&scene.store, scene.token).await, LeaseStatus::Held(_)));
    assert_eq!(finish(&scene.store, scene.token, Outcome::DONE).await, Ok(JobState::Completed));
}

/// Returns once `call` has ended or waits for a lock, besides `others` that do.
async fn until_stuck_or_done<T>(client: &Client, call: &tokio::task::JoinHandle<T>, others: i64) {
    while !call.is_finished() && waiting(client).await <= others {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Starts a reaper that has found the expired leases and is stopped before it reaps them, by a lock on another table
/// that it writes to.
async fn reaping(scene: &Scene) -> (LockHolder, tokio::task::JoinHandle<usize>) {
    scene.expire().await;
    let holder = LockHolder::with(scene.database.url(), "LOCK TABLE orchestrix.depth_delta IN SHARE MODE").await;
    let store = scene.store.clone();
    let reaper = tokio::spawn(async move { reaped(&store, 3).await });
    until_waiting(&scene.client, 1).await;
    (holder, reaper)
}

#[tokio::test]
async fn a_lease_extended_after_the_reaper_found_it_is_kept() {
    let scene = Scene::new().await;
    let (holder, reaper) = reaping(&scene).await;
    assert!(matches!(heartbeat(&scene.store, scene.token).await, LeaseStatus::Held(_)));
    holder.rollback().await;
    assert_eq!(reaper.await.unwrap(), 0);
    let job = get(&scene.store, scene.token.job).await;
    assert_eq!((job.state, job.attempts, job.losses), (JobState::Running, 0, 0));
    assert_eq!(finish(&scene.store, scene.token, Outcome::DONE).await, Ok(JobState::Completed));
    invariants::assert_consistent(&scene.client).await;
}

#[tokio::test]
async fn a_lease_being_extended_when_the_reaper_writes_is_kept() {
    let scene = Scene::new().await;
    let (holder, reaper) = reaping(&scene).await;
    let extending = LockHolder::with(scene.database.url(), EXTENDED).await;
    holder.rollback().await;
    until_waiting(&scene.client, 1).await;
    extending.commit().await;
    assert_eq!(reaper.await.unwrap(), 0);
    assert_eq!(state(&scene.store, scene.token.job).await, JobState::Running);
    invariants::assert_consistent(&scene.client).await;
}

#[tokio::test]
async fn a_job_that_is_being_finished_is_not_reaped() {
    let scene = Scene::new().await;
    scene.expire().await;
    // The attempt is being finished when the reaper searches.
    let holder = LockHolder::with_history_of(scene.database.url(), scene.token.job).await;
    let end = tokio::spawn(finishing(&scene, Outcome::DONE));
    until_waiting(&scene.client, 1).await;
    let store = scene.store.clone();
    let reaper = tokio::spawn(async move { reaped(&store, 3).await });
    until_stuck_or_done(&scene.client, &reaper, 1).await;
    holder.rollback().await;
    assert_eq!(end.await.unwrap(), Ok(JobState::Completed));
    assert_eq!(reaper.await.unwrap(), 0);
    invariants::assert_consistent(&scene.client).await;
}

#[tokio::test]
async fn a_heartbeat_does_not_wait_for_a_locked_row_and_extends_the_other_leases() {
    let mut scene = Scene::new().await;
    for change in [LEASED_AGAIN, COUNTER_ONLY, SECRET_ONLY] {
        scene.reset().await;
        let change = &format!("{change} WHERE id = '{}'", scene.token.job);
        let other = start(&scene.store, job("t")).await.token;
        let holder = LockHolder::with(scene.database.url(), change).await;
        let answers = scene.store.extend_leases(&[scene.token, other]).await.unwrap();
        assert!(matches!(answers[..], [LeaseStatus::Locked(_), LeaseStatus::Held(_)]), "{answers:?} during {change}");
        holder.commit().await;
        let left = all_rows(&scene.client).await;
        assert_eq!(heartbeat(&scene.store, scene.token).await, LeaseStatus::Lost, "after {change}");
        assert_eq!(all_rows(&scene.client).await, left, "after {change}");
    }
}

#[tokio::test]
async fn a_heartbeat_does_not_wait_for_the_reaper_and_returns_lost_afterwards() {
    let scene = Scene::new().await;
    scene.expire().await;
    // One loss is a crash loop here, so that the reaper inserts a dead job and can be stopped there.
    let holder = LockHolder::with_dead(scene.database.url(), scene.token.job).await;
    let store = scene.store.clone();
    let reaper = tokio::spawn(async move { reaped(&store, 1).await });
    until_waiting(&scene.client, 1).await;
    assert!(matches!(heartbeat(&scene.store, scene.token).await, LeaseStatus::Locked(_)));
    holder.rollback().await;
    assert_eq!(reaper.await.unwrap(), 1);
    assert_eq!(heartbeat(&scene.store, scene.token).await, LeaseStatus::Lost);
    assert_eq!(finish(&scene.store, scene.token, Outcome::DONE).await, Err(FinishError::LeaseLost));
    assert_eq!(state(&scene.store, scene.token.job).await, JobState::Dead);
    invariants::assert_consistent(&scene.client).await;
}

#[tokio::test]
async fn of_two_reapers_one_reaps_a_lease() {
    let scene = Scene::new().await;
    let (holder, first) = reaping(&scene).await;
    let store = scene.store.clone();
    let second = tokio::spawn(async move { reaped(&store, 3).await });
    until_waiting(&scene.client, 2).await;
    holder.rollback().await;
    assert_eq!(first.await.unwrap() + second.await.unwrap(), 1);
    let job = get(&scene.store, scene.token.job).await;
    assert_eq!((job.state, job.attempts, job.losses), (JobState::Pending, 1, 1));
    invariants::assert_consistent(&scene.client).await;
}

#[tokio::test]
async fn concurrent_log_appends_of_one_job_commit_in_order() {
    let scene = Scene::new().await;
    let line = |message: &str| vec![LogLine { at: None, level: LogLevel::Info, message: message.into() }];
    // One call has its sequence numbers and has not committed.
    let holder = LockHolder::begin(scene.database.url()).await;
    let token = scene.token;
    let (times, levels, messages) = (vec![None::<orchestrix_core::Timestamp>], vec!["info"], vec!["first"]);
    let statement = include_str!("../../../queries/append_logs.sql");
    let added = holder
        .client()
        .query(statement, &[&token.job.as_uuid(), &token.counter, &token.secret, &times, &levels, &messages])
        .await
        .unwrap();
    assert_eq!(added.len(), 1);
    let store = scene.store.clone();
    let second = tokio::spawn(async move { store.append_logs(token, line("second")).await });
    until_waiting(&scene.client, 1).await;
    let page = PageRequest::first(10);
    assert_eq!(scene.store.job_logs(token.job, &page).await.unwrap().items, [], "no line is visible yet");
    // Appends of other jobs do not wait.
    let other = start(&scene.store, job("other")).await.token;
    scene.store.append_logs(other, line("other")).await.unwrap();
    holder.commit().await;
    second.await.unwrap().unwrap();
    let lines = scene.store.job_logs(token.job, &page).await.unwrap().items;
    assert_eq!(lines.iter().map(|line| line.message.as_str()).collect::<Vec<_>>(), ["first", "second"]);
}
