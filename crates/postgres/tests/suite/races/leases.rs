//! Whoever lost a lease while waiting for the job's row changes nothing; whoever kept it goes on.

use std::time::Duration;

use orchestrix_core::{JobState, LeaseToken};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{
    Fence, FinishError, LeaseStatus, LogLevel, LogLine, Outcome, PageRequest, ProgressUpdate, StoreError, prelude::*,
};
use orchestrix_testkit::TestDatabase;
use tokio_postgres::Client;

use crate::{
    books,
    jobs::*,
    locks::{Holder, until_waiting, waiting},
    support,
};

/// How a lease may be lost in another transaction.
const LEASED_ANEW: &str =
    "UPDATE orchestrix.job SET lease_counter = lease_counter + 1, lease_secret = gen_random_uuid(), worker = 'other'";
const COUNTER_ONLY: &str = "UPDATE orchestrix.job SET lease_counter = lease_counter + 1";
const SECRET_ONLY: &str = "UPDATE orchestrix.job SET lease_secret = gen_random_uuid()";
const TAKEN_BACK: &str = "UPDATE orchestrix.job SET state = 'pending', lease_expires_at = NULL;
    INSERT INTO orchestrix.depth_delta VALUES ('default', 'running', -1), ('default', 'pending', 1)";
const REDRIVEN: &str = "CREATE TEMP TABLE moving ON COMMIT DROP AS SELECT * FROM orchestrix.job;
    DELETE FROM orchestrix.job;
    UPDATE moving SET state = 'pending', lease_expires_at = NULL;
    INSERT INTO orchestrix.job SELECT * FROM moving;
    INSERT INTO orchestrix.depth_delta VALUES ('default', 'running', -1), ('default', 'pending', 1)";
const LOST: [&str; 5] = [LEASED_ANEW, COUNTER_ONLY, SECRET_ONLY, TAKEN_BACK, REDRIVEN];

/// How it may be extended.
const EXTENDED: &str = "UPDATE orchestrix.job SET lease_expires_at = now() + interval '30 seconds'";

struct Scene {
    database: TestDatabase,
    store: PostgresStore,
    client: Client,
    token: LeaseToken,
}

impl Scene {
    /// One job, claimed.
    async fn new() -> Self {
        let database = support::database();
        let store = open(database.url()).await;
        let client = support::connect(database.url()).await;
        let token = start(&store, job("t")).await.token;
        Self { database, store, client, token }
    }

    /// The same anew, in a database that was emptied.
    async fn again(&mut self) {
        let sql = "TRUNCATE orchestrix.job, orchestrix.history, orchestrix.dead, orchestrix.log, orchestrix.depth, orchestrix.depth_delta";
        self.client.execute(sql, &[]).await.unwrap();
        self.token = start(&self.store, job("t")).await.token;
    }

    /// Sets the lease back, so that it has run out.
    async fn expire(&self) {
        let sql = "UPDATE orchestrix.job SET lease_expires_at = now() - interval '1 second'";
        self.client.execute(sql, &[]).await.unwrap();
    }

    /// Calls the store while `change` is made and not yet committed; commits once the call waits. Answers with what the
    /// call said and with what the change alone would leave.
    async fn wait_out<T: Send + 'static>(
        &self,
        change: &str,
        call: impl Future<Output = T> + Send + 'static,
    ) -> (T, String) {
        let holder = Holder::with(self.database.url(), change).await;
        let call = tokio::spawn(call);
        until_waiting(&self.client, 1).await;
        let left = everything(holder.client()).await;
        holder.commit().await;
        (call.await.unwrap(), left)
    }
}

/// All that the database holds of the job and its logs, as the connection's transaction sees it.
async fn everything(client: &Client) -> String {
    let sql = "SELECT jsonb_build_array((SELECT jsonb_agg(j) FROM orchestrix.job j), (SELECT jsonb_agg(h) FROM orchestrix.history h),
        (SELECT jsonb_agg(d) FROM orchestrix.dead d), (SELECT jsonb_agg(l) FROM orchestrix.log l))::text";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

fn finishing(scene: &Scene, outcome: Outcome) -> impl Future<Output = Result<JobState, FinishError>> + Send + 'static {
    let (store, token) = (scene.store.clone(), scene.token);
    async move { finish(&store, token, outcome).await }
}

#[tokio::test]
async fn a_verdict_that_waited_while_its_lease_was_lost_is_refused_and_changes_nothing() {
    let mut scene = Scene::new().await;
    for change in LOST {
        for outcome in [Outcome::DONE, Outcome::fail("late"), fatal(), Outcome::Release, Outcome::Cancelled] {
            scene.again().await;
            let (answer, left) = scene.wait_out(change, finishing(&scene, outcome.clone())).await;
            assert_eq!(answer, Err(FinishError::LeaseLost), "{outcome:?} after {change}");
            assert_eq!(everything(&scene.client).await, left, "{outcome:?} after {change}");
            books::assert_balanced(&scene.client).await;
        }
    }
}

#[tokio::test]
async fn a_verdict_that_waited_while_its_lease_was_extended_is_accepted() {
    let mut scene = Scene::new().await;
    for (outcome, state) in [
        (Outcome::DONE, JobState::Completed),
        (Outcome::fail("once"), JobState::Retrying),
        (fatal(), JobState::Dead),
        (Outcome::Release, JobState::Pending),
    ] {
        scene.again().await;
        // Though it had run out: until somebody takes it back, it is current.
        scene.expire().await;
        let (answer, _) = scene.wait_out(EXTENDED, finishing(&scene, outcome)).await;
        assert_eq!(answer, Ok(state));
        assert_eq!(get(&scene.store, scene.token.job).await.state, state);
        books::assert_balanced(&scene.client).await;
    }
}

#[tokio::test]
async fn progress_that_waited_while_its_lease_was_lost_is_refused_and_changes_nothing() {
    let mut scene = Scene::new().await;
    for change in LOST {
        scene.again().await;
        let (store, token) = (scene.store.clone(), scene.token);
        let update = ProgressUpdate { progress: None, checkpoint: Some(orchestrix_core::Json::trusted("1")) };
        let (answer, left) = scene.wait_out(change, async move { store.record_progress(token, update).await }).await;
        assert!(matches!(answer, Err(StoreError::LeaseLost)), "{answer:?} after {change}");
        assert_eq!(everything(&scene.client).await, left, "after {change}");
    }
}

#[tokio::test]
async fn log_lines_that_waited_while_their_attempt_ended_are_refused() {
    let scene = Scene::new().await;
    // The attempt's end has locked the row and waits to record itself.
    let holder = Holder::with_history_of(scene.database.url(), scene.token.job).await;
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
async fn a_lease_that_is_just_being_extended_is_not_reaped() {
    let scene = Scene::new().await;
    scene.expire().await;
    let heartbeat_under_way = Holder::with(scene.database.url(), EXTENDED).await;
    let store = scene.store.clone();
    let reaper = tokio::spawn(async move { reaped(&store, 3).await });
    until_stuck_or_done(&scene.client, &reaper, 0).await;
    heartbeat_under_way.commit().await;
    assert_eq!(reaper.await.unwrap(), 0);
    assert!(matches!(heartbeat(&scene.store, scene.token).await, LeaseStatus::Held(_)));
    assert_eq!(finish(&scene.store, scene.token, Outcome::DONE).await, Ok(JobState::Completed));
}

/// Returns once `call` has ended or waits for a lock, as so many others do. (It may do so before anybody can count them.)
async fn until_stuck_or_done<T>(client: &Client, call: &tokio::task::JoinHandle<T>, others: i64) {
    while !call.is_finished() && waiting(client).await <= others {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Reaps, and stops the reaper after it has found the leases that ran out and before it takes them back: what it writes
/// besides is locked.
async fn reaping(scene: &Scene) -> (Holder, tokio::task::JoinHandle<usize>) {
    scene.expire().await;
    let holder = Holder::with(scene.database.url(), "LOCK TABLE orchestrix.depth_delta IN SHARE MODE").await;
    let store = scene.store.clone();
    let reaper = tokio::spawn(async move { reaped(&store, 3).await });
    until_waiting(&scene.client, 1).await;
    (holder, reaper)
}

#[tokio::test]
async fn a_lease_that_is_extended_after_the_reaper_looked_is_kept() {
    let scene = Scene::new().await;
    let (holder, reaper) = reaping(&scene).await;
    assert!(matches!(heartbeat(&scene.store, scene.token).await, LeaseStatus::Held(_)));
    holder.rollback().await;
    assert_eq!(reaper.await.unwrap(), 0);
    let job = get(&scene.store, scene.token.job).await;
    assert_eq!((job.state, job.attempts, job.losses), (JobState::Running, 0, 0));
    assert_eq!(finish(&scene.store, scene.token, Outcome::DONE).await, Ok(JobState::Completed));
    books::assert_balanced(&scene.client).await;
}

#[tokio::test]
async fn a_lease_that_is_just_being_extended_when_the_reaper_writes_is_kept() {
    let scene = Scene::new().await;
    let (holder, reaper) = reaping(&scene).await;
    let heartbeat_under_way = Holder::with(scene.database.url(), EXTENDED).await;
    holder.rollback().await;
    until_waiting(&scene.client, 1).await;
    heartbeat_under_way.commit().await;
    assert_eq!(reaper.await.unwrap(), 0);
    assert_eq!(state(&scene.store, scene.token.job).await, JobState::Running);
    books::assert_balanced(&scene.client).await;
}

#[tokio::test]
async fn a_job_that_is_just_being_finished_is_not_reaped() {
    let scene = Scene::new().await;
    scene.expire().await;
    // The attempt's end is under way when the reaper looks.
    let holder = Holder::with_history_of(scene.database.url(), scene.token.job).await;
    let end = tokio::spawn(finishing(&scene, Outcome::DONE));
    until_waiting(&scene.client, 1).await;
    let store = scene.store.clone();
    let reaper = tokio::spawn(async move { reaped(&store, 3).await });
    until_stuck_or_done(&scene.client, &reaper, 1).await;
    holder.rollback().await;
    assert_eq!(end.await.unwrap(), Ok(JobState::Completed));
    assert_eq!(reaper.await.unwrap(), 0);
    books::assert_balanced(&scene.client).await;
}

#[tokio::test]
async fn a_heartbeat_waits_for_nobody_renews_the_others_and_learns_of_the_loss_afterwards() {
    let mut scene = Scene::new().await;
    for change in [LEASED_ANEW, COUNTER_ONLY, SECRET_ONLY] {
        scene.again().await;
        let change = &format!("{change} WHERE id = '{}'", scene.token.job);
        let other = start(&scene.store, job("t")).await.token;
        let holder = Holder::with(scene.database.url(), change).await;
        let answers = scene.store.extend_leases(&[scene.token, other]).await.unwrap();
        assert!(matches!(answers[..], [LeaseStatus::Locked(_), LeaseStatus::Held(_)]), "{answers:?} during {change}");
        holder.commit().await;
        let left = everything(&scene.client).await;
        assert_eq!(heartbeat(&scene.store, scene.token).await, LeaseStatus::Lost, "after {change}");
        assert_eq!(everything(&scene.client).await, left, "after {change}");
    }
}

#[tokio::test]
async fn a_heartbeat_beside_the_reaper_waits_for_nobody_and_says_lost_afterwards() {
    let scene = Scene::new().await;
    scene.expire().await;
    // The first loss is a crash loop here, so that the reaper has something to record and can be stopped there.
    let holder = Holder::with_dead(scene.database.url(), scene.token.job).await;
    let store = scene.store.clone();
    let reaper = tokio::spawn(async move { reaped(&store, 1).await });
    until_waiting(&scene.client, 1).await;
    assert!(matches!(heartbeat(&scene.store, scene.token).await, LeaseStatus::Locked(_)));
    holder.rollback().await;
    assert_eq!(reaper.await.unwrap(), 1);
    assert_eq!(heartbeat(&scene.store, scene.token).await, LeaseStatus::Lost);
    assert_eq!(finish(&scene.store, scene.token, Outcome::DONE).await, Err(FinishError::LeaseLost));
    assert_eq!(state(&scene.store, scene.token.job).await, JobState::Dead);
    books::assert_balanced(&scene.client).await;
}

#[tokio::test]
async fn of_two_reapers_one_takes_a_lease_back() {
    let scene = Scene::new().await;
    let (holder, first) = reaping(&scene).await;
    let store = scene.store.clone();
    let second = tokio::spawn(async move { reaped(&store, 3).await });
    until_waiting(&scene.client, 2).await;
    holder.rollback().await;
    assert_eq!(first.await.unwrap() + second.await.unwrap(), 1);
    let job = get(&scene.store, scene.token.job).await;
    assert_eq!((job.state, job.attempts, job.losses), (JobState::Pending, 1, 1));
    books::assert_balanced(&scene.client).await;
}

#[tokio::test]
async fn lines_of_one_job_take_turns_so_that_none_comes_before_one_that_was_read() {
    let scene = Scene::new().await;
    let line = |message: &str| vec![LogLine { at: None, level: LogLevel::Info, message: message.into() }];
    // One call has its numbers, and is not committed.
    let holder = Holder::begin(scene.database.url()).await;
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
    assert_eq!(scene.store.job_logs(token.job, &page).await.unwrap().items, [], "nothing is there to be read past");
    // Other jobs do not wait for it.
    let other = start(&scene.store, job("other")).await.token;
    scene.store.append_logs(other, line("other")).await.unwrap();
    holder.commit().await;
    second.await.unwrap().unwrap();
    let lines = scene.store.job_logs(token.job, &page).await.unwrap().items;
    assert_eq!(lines.iter().map(|line| line.message.as_str()).collect::<Vec<_>>(), ["first", "second"]);
}
