//! Jobs in the caller's own transaction, together with a table of the caller.

use orchestrix_core::{DependsOn, JobId, JobState, Json, LeaseToken, NewJob, Queue};
use orchestrix_postgres::{
    PostgresOptions, PostgresStore,
    deadpool_postgres::{self, Manager, Pool},
};
use orchestrix_store::{Enqueued, Fence, FinishError, LeaseStatus, Outcome, StoreError, Wakeup, prelude::*};
use orchestrix_testkit::TestDatabase;
use tokio_postgres::{Client, IsolationLevel, NoTls};
use uuid::Uuid;

use crate::{
    invariants,
    jobs::*,
    locks::{LIMIT, LockHolder, until_waiting},
    support,
};

/// A store, a connection of the application with its own table, and a second connection that observes.
pub(crate) struct Scene {
    pub(crate) store: PostgresStore,
    pub(crate) database: TestDatabase,
    pub(crate) client: Client,
    pub(crate) watcher: Client,
}

pub(crate) async fn scene() -> Scene {
    let database = support::database();
    let store = open(database.url()).await;
    let client = support::connect(database.url()).await;
    client.batch_execute("CREATE TABLE orders (id integer PRIMARY KEY)").await.unwrap();
    let watcher = support::connect(database.url()).await;
    Scene { store, database, client, watcher }
}

pub(crate) const ORDER: &str = "INSERT INTO orders VALUES (1)";

impl Scene {
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.watcher.query_one(sql, &[]).await.unwrap().get(0)
    }

    pub(crate) async fn orders(&self) -> i64 {
        self.number("SELECT count(*) FROM orders").await
    }

    pub(crate) async fn jobs(&self) -> i64 {
        self.number("SELECT count(*) FROM orchestrix.jobs").await
    }
}

/// A job whose payload is too long to be stored inline.
pub(crate) fn large() -> NewJob {
    NewJob { payload: Json::trusted(&format!("\"{}\"", "x".repeat(2_000))), ..job("large") }
}

pub(crate) fn after(name: &str) -> NewJob {
    NewJob { depends_on: vec![DependsOn::Reference(name.into())], ..job("after") }
}

pub(crate) fn named(name: &str, job: NewJob) -> NewJob {
    NewJob { reference: Some(name.into()), ..job }
}

fn bad_fields(answer: Result<Vec<Enqueued>, StoreError>) -> Vec<String> {
    match answer {
        Err(StoreError::Invalid(invalid)) => invalid.errors.into_iter().map(|error| error.field).collect(),
        other => panic!("expected an invalid-input error: {other:?}"),
    }
}

#[tokio::test]
async fn jobs_exist_once_the_callers_transaction_commits_and_not_before() {
    let mut s = scene().await;
    let tx = s.client.transaction().await.unwrap();
    tx.batch_execute(ORDER).await.unwrap();
    let jobs = vec![job("plain"), large(), keyed("k")];
    let enqueued = s.store.enqueue_in(&tx, jobs).await.unwrap();
    assert!(enqueued.iter().all(|job| job.state == JobState::Pending && !job.duplicate), "{enqueued:?}");
    assert!(s.store.job(enqueued[0].id).await.unwrap().is_none(), "visible before its commit");
    assert!(claim(&s.store, 10).await.is_empty());
    tx.commit().await.unwrap();
    s.store.notify(&[Queue::default()]);
    let mut claimed: Vec<JobId> = claim(&s.store, 10).await.iter().map(|claimed| claimed.id()).collect();
    claimed.sort_unstable();
    assert_eq!(claimed, enqueued.iter().map(|job| job.id).collect::<Vec<_>>());
    assert_eq!(get(&s.store, enqueued[1].id).await.payload, large().payload);
    assert_eq!(s.orders().await, 1);
    invariants::assert_consistent(&s.watcher).await;
}

#[tokio::test]
async fn a_rollback_leaves_no_trace_of_a_job() {
    let mut s = scene().await;
    let parent = enqueue(&s.store, NewJob { hold: true, ..job("parent") }).await;
    s.watcher.batch_execute("DELETE FROM orchestrix.depth_delta").await.unwrap();
    let tx = s.client.transaction().await.unwrap();
    let jobs = vec![named("first", keyed("k")), after("first"), large(), child_of(&[parent])];
    let enqueued = s.store.enqueue_in(&tx, jobs).await.unwrap();
    assert_eq!(enqueued.len(), 4);
    tx.rollback().await.unwrap();
    for table in ["payload", "idempotency", "dependency", "depth_delta", "history", "settled"] {
        assert_eq!(s.number(&format!("SELECT count(*) FROM orchestrix.{table}")).await, 0, "{table}");
    }
    assert_eq!(s.number("SELECT count(*) FROM orchestrix.job WHERE NOT has_dependents").await, 1, "only the parent");
    let again = s.store.enqueue_job(keyed("k")).await.unwrap();
    assert!(!again.duplicate, "the key is free");
}

#[tokio::test]
async fn an_idempotency_key_means_one_job_inside_the_transaction_and_outside() {
    let mut s = scene().await;
    let outside = enqueue(&s.store, keyed("outside")).await;
    let tx = s.client.transaction().await.unwrap();
    let enqueued = s.store.enqueue_in(&tx, vec![keyed("outside"), keyed("inside"), keyed("inside")]).await.unwrap();
    assert_eq!((enqueued[0].id, enqueued[0].duplicate), (outside, true));
    assert!(!enqueued[1].duplicate);
    assert_eq!((enqueued[2].id, enqueued[2].duplicate), (enqueued[1].id, true));
    let repeated = s.store.enqueue_in(&tx, vec![keyed("inside")]).await.unwrap();
    assert_eq!((repeated[0].id, repeated[0].duplicate), (enqueued[1].id, true), "in the same transaction");
    tx.commit().await.unwrap();
    let later = s.store.enqueue_job(keyed("inside")).await.unwrap();
    assert_eq!((later.id, later.duplicate), (enqueued[1].id, true));
    assert_eq!(s.jobs().await, 2);
    invariants::assert_consistent(&s.watcher).await;
}

#[tokio::test]
async fn jobs_depend_on_each_other_and_on_jobs_outside_the_transaction() {
    let mut s = scene().await;
    let done = start(&s.store, job("done")).await;
    finish(&s.store, done.token, Outcome::DONE).await.unwrap();
    let failed = start(&s.store, job("failed")).await;
    finish(&s.store, failed.token, fatal()).await.unwrap();
    let running = start(&s.store, job("running")).await;
    let tx = s.client.transaction().await.unwrap();
    let jobs = vec![
        named("first", child_of(&[running.id(), done.id()])),
        after("first"),
        named("doomed", child_of(&[failed.id()])),
        after("doomed"),
    ];
    let enqueued = s.store.enqueue_in(&tx, jobs).await.unwrap();
    let states: Vec<JobState> = enqueued.iter().map(|job| job.state).collect();
    assert_eq!(states, [JobState::Blocked, JobState::Blocked, JobState::Cancelled, JobState::Blocked]);
    tx.commit().await.unwrap();
    s.store.unblock_jobs(Fence::NONE, 100).await.unwrap();
    assert_eq!(state(&s.store, enqueued[3].id).await, JobState::Cancelled, "its parent was cancelled");
    finish(&s.store, running.token, Outcome::DONE).await.unwrap();
    let first = claim_soon(&s.store).await;
    assert_eq!(first.id(), enqueued[0].id);
    finish(&s.store, first.token, Outcome::DONE).await.unwrap();
    assert_eq!(claim_soon(&s.store).await.id(), enqueued[1].id);
    invariants::assert_consistent(&s.watcher).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parent_outside_finishes_only_after_the_commit_and_then_unblocks_its_child() {
    let mut s = scene().await;
    let parent = start(&s.store, job("parent")).await;
    let tx = s.client.transaction().await.unwrap();
    let child = s.store.enqueue_in(&tx, vec![child_of(&[parent.id()])]).await.unwrap()[0].id;
    let (store, token) = (s.store.clone(), parent.token);
    let finishing = tokio::spawn(async move { finish(&store, token, Outcome::DONE).await });
    until_waiting(&s.watcher, 1).await;
    tx.commit().await.unwrap();
    assert_eq!(finishing.await.unwrap(), Ok(JobState::Completed));
    assert_eq!(state(&s.store, child).await, JobState::Pending);
}

#[tokio::test]
async fn a_refused_call_leaves_the_transaction_unchanged() {
    let mut s = scene().await;
    let other = enqueue(&s.store, keyed("k")).await;
    let unknown = JobId::from_uuid(Uuid::from_u128(7));
    let tx = s.client.transaction().await.unwrap();
    tx.batch_execute("SET LOCAL lock_timeout = '90s'").await.unwrap();
    tx.batch_execute(ORDER).await.unwrap();
    let bad = s.store.enqueue_in(&tx, vec![job("t"), NewJob { max_attempts: 0, ..job("t") }]).await;
    assert_eq!(bad_fields(bad), ["jobs[1].maxAttempts"]);
    let bad = s.store.enqueue_in(&tx, vec![keyed("new"), child_of(&[unknown])]).await;
    assert_eq!(bad_fields(bad), ["jobs[1].dependsOn"]);
    let reused = NewJob { payload: Json::trusted("1"), ..keyed("k") };
    let answer = s.store.enqueue_in(&tx, vec![job("t"), reused]).await;
    assert!(matches!(answer, Err(StoreError::IdempotencyKeyReused { existing }) if existing == other), "{answer:?}");
    assert_eq!(s.store.enqueue_in(&tx, Vec::new()).await.unwrap(), []);
    let enqueued = s.store.enqueue_in(&tx, vec![keyed("new")]).await.unwrap();
    assert!(!enqueued[0].duplicate, "the refused call took no key");
    let lock_timeout: String = tx.query_one("SHOW lock_timeout", &[]).await.unwrap().get(0);
    assert_eq!(lock_timeout, "90s", "the caller's settings are restored");
    tx.commit().await.unwrap();
    assert_eq!((s.orders().await, s.jobs().await), (1, 2));
    invariants::assert_consistent(&s.watcher).await;
}

#[tokio::test]
async fn a_statement_that_fails_leaves_the_transaction_usable() {
    let mut s = scene().await;
    s.watcher.batch_execute("ALTER TABLE orchestrix.job ADD CONSTRAINT no CHECK (job_type <> 'no')").await.unwrap();
    let tx = s.client.transaction().await.unwrap();
    tx.batch_execute(ORDER).await.unwrap();
    let answer = s.store.enqueue_in(&tx, vec![job("t"), job("no")]).await;
    assert!(matches!(answer, Err(StoreError::Backend(_))), "{answer:?}");
    tx.commit().await.unwrap();
    assert_eq!((s.orders().await, s.jobs().await), (1, 0));
}

/// Two transactions insert one key; the first commits or rolls back while the second waits.
async fn race_for_a_key(committed: bool) {
    let mut s = scene().await;
    let first = s.client.transaction().await.unwrap();
    let first_job = s.store.enqueue_in(&first, vec![keyed("k")]).await.unwrap()[0];
    let (store, url) = (s.store.clone(), s.database.url().to_owned());
    let second = tokio::spawn(async move {
        let mut client = support::connect(&url).await;
        let tx = client.transaction().await.unwrap();
        tx.batch_execute(ORDER).await.unwrap();
        let answer = store.enqueue_in(&tx, vec![keyed("k"), job("beside")]).await.unwrap();
        tx.commit().await.unwrap();
        answer
    });
    until_waiting(&s.watcher, 1).await;
    if committed {
        first.commit().await.unwrap();
    } else {
        first.rollback().await.unwrap();
    }
    let answer = second.await.unwrap();
    assert_eq!((answer[0].id == first_job.id, answer[0].duplicate), (committed, committed));
    assert_eq!((s.orders().await, s.jobs().await), (1, 2));
    invariants::assert_consistent(&s.watcher).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_transactions_with_one_key_the_second_waits_and_gets_the_job_of_the_first() {
    race_for_a_key(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_transactions_with_one_key_the_second_enqueues_after_the_first_rolls_back() {
    race_for_a_key(false).await;
}

#[tokio::test]
async fn a_key_held_beyond_the_lock_timeout_is_an_error_and_the_transaction_stays_usable() {
    let mut s = scene().await;
    let holder = LockHolder::with(s.database.url(), "SELECT orchestrix.enqueue('keyed', idempotency_key => 'k')").await;
    let lock_timeout = std::time::Duration::from_millis(100);
    let options = PostgresOptions { lock_timeout, ..options(s.database.url()) };
    let short_timeout = PostgresStore::open(options).await.unwrap();
    let tx = s.client.transaction().await.unwrap();
    tx.batch_execute(ORDER).await.unwrap();
    let answer = short_timeout.enqueue_in(&tx, vec![keyed("k")]).await;
    assert!(matches!(&answer, Err(StoreError::Unavailable(text)) if text.contains("lock timeout")), "{answer:?}");
    short_timeout.enqueue_in(&tx, vec![keyed("other")]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(s.orders().await, 1);
    holder.commit().await;
    assert_eq!(s.jobs().await, 2);
}

#[tokio::test]
async fn a_key_inserted_since_a_repeatable_read_transaction_began_is_an_error_and_the_transaction_stays_usable() {
    let mut s = scene().await;
    let repeatable =
        s.client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start().await.unwrap();
    repeatable.batch_execute(ORDER).await.unwrap();
    enqueue(&s.store, keyed("k")).await;
    let answer = s.store.enqueue_in(&repeatable, vec![keyed("k")]).await;
    assert!(
        matches!(&answer, Err(StoreError::Unavailable(text)) if text.contains("could not serialize")),
        "{answer:?}"
    );
    repeatable.commit().await.unwrap();
    assert_eq!((s.orders().await, s.jobs().await), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_call_leaves_nothing_in_the_transaction() {
    let mut s = scene().await;
    let holder = LockHolder::with(s.database.url(), "SELECT orchestrix.enqueue('keyed', idempotency_key => 'k')").await;
    let tx = s.client.transaction().await.unwrap();
    tx.batch_execute(ORDER).await.unwrap();
    tokio::select! {
        answer = s.store.enqueue_in(&tx, vec![keyed("k"), job("beside")]) => panic!("it must wait: {answer:?}"),
        () = until_waiting(&s.watcher, 1) => {}
    }
    holder.rollback().await;
    tx.commit().await.unwrap();
    assert_eq!((s.orders().await, s.jobs().await), (1, 0));
    invariants::assert_consistent(&s.watcher).await;
}

#[tokio::test]
async fn a_job_completes_when_the_callers_transaction_commits_and_the_sweep_unblocks_its_dependents() {
    let mut s = scene().await;
    let claimed = start(&s.store, job("t")).await;
    let child = enqueue(&s.store, child_of(&[claimed.id()])).await;
    let tx = s.client.transaction().await.unwrap();
    tx.batch_execute(ORDER).await.unwrap();
    let result = Some(Json::trusted("{\"order\": 1}"));
    s.store.complete_in(&tx, claimed.token, result.clone()).await.unwrap();
    assert_eq!(state(&s.store, claimed.id()).await, JobState::Running, "visible before its commit");
    tx.commit().await.unwrap();
    let done = get(&s.store, claimed.id()).await;
    assert_eq!((done.state, done.result.as_ref(), done.attempts), (JobState::Completed, result.as_ref(), 1));
    assert_eq!(s.orders().await, 1);
    // The worker reports the same outcome again.
    let again = finish(&s.store, claimed.token, Outcome::Complete { result }).await;
    assert_eq!(again, Ok(JobState::Completed));
    assert_eq!(finish(&s.store, claimed.token, Outcome::DONE).await, Err(FinishError::LeaseLost), "another result");
    assert_eq!(s.store.next_sweep_times().await.unwrap().unblock, Some(std::time::Duration::ZERO));
    assert_eq!(state(&s.store, child).await, JobState::Blocked);
    s.store.unblock_jobs(Fence::NONE, 100).await.unwrap();
    assert_eq!(state(&s.store, child).await, JobState::Pending);
    invariants::assert_consistent(&s.watcher).await;
}

#[tokio::test]
async fn a_rollback_leaves_the_job_to_its_worker() {
    let mut s = scene().await;
    let claimed = start(&s.store, job("t")).await;
    let tx = s.client.transaction().await.unwrap();
    tx.batch_execute(ORDER).await.unwrap();
    s.store.complete_in(&tx, claimed.token, None).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!((state(&s.store, claimed.id()).await, s.orders().await), (JobState::Running, 0));
    let beat = s.store.extend_leases(&[claimed.token]).await.unwrap();
    assert!(matches!(beat[..], [LeaseStatus::Held(_)]), "{beat:?}");
    assert_eq!(finish(&s.store, claimed.token, Outcome::DONE).await, Ok(JobState::Completed));
}

#[tokio::test]
async fn a_lost_lease_completes_nothing_and_leaves_the_transaction_usable() {
    let mut s = scene().await;
    let lost = start(&s.store, job("t")).await.token;
    finish(&s.store, lost, Outcome::Release).await.unwrap();
    let current = claim(&s.store, 1).await[0].token;
    let tx = s.client.transaction().await.unwrap();
    let forged = LeaseToken { secret: Uuid::nil(), ..current };
    for token in [lost, forged, LeaseToken { counter: current.counter + 1, ..current }] {
        let answer = s.store.complete_in(&tx, token, None).await;
        assert!(matches!(answer, Err(StoreError::LeaseLost)), "{answer:?}");
    }
    tx.batch_execute(ORDER).await.unwrap();
    s.store.complete_in(&tx, current, None).await.unwrap();
    let twice = s.store.complete_in(&tx, current, None).await;
    assert!(matches!(twice, Err(StoreError::LeaseLost)), "{twice:?}");
    tx.commit().await.unwrap();
    assert_eq!((state(&s.store, current.job).await, s.orders().await), (JobState::Completed, 1));
    invariants::assert_consistent(&s.watcher).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completion_that_waits_while_its_lease_is_reaped_is_refused() {
    let mut s = scene().await;
    let claimed = start(&s.store, job("t")).await;
    let sql = format!(
        "UPDATE orchestrix.job SET state = 'pending', lease_expires_at = NULL, timeout_at = NULL WHERE id = '{}'",
        claimed.id()
    );
    let reaping = LockHolder::with(s.database.url(), &sql).await;
    let tx = s.client.transaction().await.unwrap();
    let complete = async {
        let answer = s.store.complete_in(&tx, claimed.token, None).await;
        tx.batch_execute(ORDER).await.unwrap();
        tx.commit().await.unwrap();
        answer
    };
    let reap = async {
        until_waiting(&s.watcher, 1).await;
        reaping.commit().await;
    };
    let (answer, ()) = tokio::join!(complete, reap);
    assert!(matches!(answer, Err(StoreError::LeaseLost)), "{answer:?}");
    assert_eq!((state(&s.store, claimed.id()).await, s.orders().await), (JobState::Pending, 1));
}

#[tokio::test]
async fn a_handlers_writes_and_its_completion_are_atomic_when_its_connection_dies() {
    let mut s = scene().await;
    let claimed = start(&s.store, job("t")).await;
    let pid: i32 = s.client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let tx = s.client.transaction().await.unwrap();
    tx.batch_execute(ORDER).await.unwrap();
    s.store.enqueue_in(&tx, vec![keyed("next")]).await.unwrap();
    s.store.complete_in(&tx, claimed.token, None).await.unwrap();
    s.watcher.execute("SELECT pg_terminate_backend($1, 60000)", &[&pid]).await.unwrap();
    assert!(tx.commit().await.is_err());
    assert_eq!((state(&s.store, claimed.id()).await, s.orders().await, s.jobs().await), (JobState::Running, 0, 1));
    let mut client = support::connect(s.database.url()).await;
    let tx = client.transaction().await.unwrap();
    tx.batch_execute(ORDER).await.unwrap();
    s.store.enqueue_in(&tx, vec![keyed("next")]).await.unwrap();
    s.store.complete_in(&tx, claimed.token, None).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((state(&s.store, claimed.id()).await, s.orders().await, s.jobs().await), (JobState::Completed, 1, 2));
    invariants::assert_consistent(&s.watcher).await;
}

#[tokio::test]
async fn a_dead_connection_is_an_error() {
    let mut s = scene().await;
    let pid: i32 = s.client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let tx = s.client.transaction().await.unwrap();
    s.watcher.execute("SELECT pg_terminate_backend($1, 60000)", &[&pid]).await.unwrap();
    let answer = s.store.enqueue_in(&tx, vec![job("t")]).await;
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notify_after_the_commit_wakes_subscribers_and_the_job_is_claimed_at_once() {
    let mut s = scene().await;
    let mut wakeups = s.store.job_wakeups();
    // Its jobs are eligible from its start, so lane cursors have passed them by the commit.
    let tx = s.client.transaction().await.unwrap();
    tx.batch_execute(ORDER).await.unwrap();
    for _ in 0..3 {
        start(&s.store, job("t")).await;
    }
    let id = s.store.enqueue_in(&tx, vec![job("t")]).await.unwrap()[0].id;
    tx.commit().await.unwrap();
    wakeups.drain();
    s.store.notify(&[Queue::default()]);
    let hint = tokio::time::timeout(LIMIT, wakeups.next()).await.expect("a hint");
    assert_eq!(hint, Wakeup::Queue(Queue::default()));
    let found: Vec<JobId> = claim(&s.store, 10).await.iter().map(|claimed| claimed.id()).collect();
    assert_eq!(found, [id]);
}

#[tokio::test]
async fn a_transaction_of_a_deadpool_connection_is_accepted() {
    let s = scene().await;
    let config = s.database.url().parse().unwrap();
    let pool = Pool::builder(Manager::new(config, NoTls)).build().unwrap();
    let mut client: deadpool_postgres::Object = pool.get().await.unwrap();
    let tx = client.transaction().await.unwrap();
    let id = s.store.enqueue_in(&tx, vec![job("t")]).await.unwrap()[0].id;
    tx.commit().await.unwrap();
    let claimed = claim_soon(&s.store).await;
    assert_eq!(claimed.id(), id);
    let tx = client.transaction().await.unwrap();
    s.store.complete_in(&tx, claimed.token, None).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(state(&s.store, id).await, JobState::Completed);
}
