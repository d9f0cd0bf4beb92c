//! Bulk operations, advanced by the leader.

use std::{sync::Arc, time::Duration};

use orchestrix_coordinator::{Coordinator, CoordinatorOptions};
use orchestrix_core::{JobId, JobState, NewJob, NodeName, OperationId, Priority, Queue, Timestamp};
use orchestrix_memory::MemoryStore;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{
    BulkAction, JobFilter, Leadership, NewOperation, Operation, OperationState, Outcome, OutcomeReport, PageRequest,
    Store,
};
use orchestrix_testkit::{PostgresServer, TestDatabase, psql};

use crate::support::{claim, job, leading, options, start, wait_for};

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn in_queue(name: &str) -> NewJob {
    NewJob { queue: Queue::trusted(name), ..job("t") }
}

fn of_queue(name: &str) -> JobFilter {
    JobFilter { queue: Some(Queue::trusted(name)), ..JobFilter::default() }
}

async fn begin(store: &dyn Store, action: BulkAction, filter: JobFilter, dry_run: bool) -> OperationId {
    let new = NewOperation { action, filter, dry_run, actor: "ann".into(), tenant: None };
    store.begin_operation(new).await.unwrap().id
}

/// Waits until the operation has ended.
async fn wait_until_ended(store: &dyn Store, id: OperationId) -> Operation {
    wait_for("the operation has ended", async || {
        store.operation(id).await.unwrap().filter(|operation| operation.state != OperationState::Running)
    })
    .await
}

async fn count(store: &dyn Store, filter: &JobFilter) -> usize {
    let mut n = 0;
    let mut page = PageRequest::first(1_000);
    loop {
        let part = store.list_jobs(filter, &page).await.unwrap();
        n += part.items.len();
        let Some(next) = part.next else { return n };
        page = PageRequest::after(next, 1_000);
    }
}

fn counts(operation: &Operation) -> (OperationState, u64, u64, u64) {
    (operation.state, operation.matched, operation.changed, operation.refused)
}

#[tokio::test]
async fn an_operation_changes_exactly_the_matching_jobs() {
    let store = memory();
    // More than two pages of one queue, and jobs of another between them.
    store.enqueue_jobs((0..2_402).map(|n| in_queue(if n % 2 == 0 { "a" } else { "b" })).collect()).await.unwrap();
    let dry = begin(&*store, BulkAction::Cancel, of_queue("a"), true).await;
    let real = begin(&*store, BulkAction::Cancel, of_queue("a"), false).await;
    let node = start(&store, "a");
    assert_eq!(counts(&wait_until_ended(&*store, dry).await), (OperationState::Done, 1_201, 0, 0));
    assert_eq!(counts(&wait_until_ended(&*store, real).await), (OperationState::Done, 1_201, 1_201, 0));
    let cancelled = JobFilter { states: vec![JobState::Cancelled], ..of_queue("a") };
    assert_eq!(count(&*store, &cancelled).await, 1_201);
    let pending = JobFilter { states: vec![JobState::Pending], ..of_queue("b") };
    assert_eq!(count(&*store, &pending).await, 1_201);
    let status = &node.status().services["advance_operations"];
    assert_eq!((status.affected, status.failures), (1_201, 0));
}

#[tokio::test]
async fn operations_retry_jobs_and_change_priorities_where_possible() {
    let store = memory();
    for _ in 0..3 {
        store.enqueue_job(in_queue("a")).await.unwrap();
        let token = claim(&*store).await.unwrap().token;
        let outcome = Outcome::Fail { error: "no use".into(), retryable: false, retry_after: None };
        store.finish_attempts(vec![OutcomeReport { token, outcome }]).await.unwrap();
    }
    store.enqueue_job(in_queue("a")).await.unwrap();
    let token = claim(&*store).await.unwrap().token;
    store.finish_attempts(vec![OutcomeReport { token, outcome: Outcome::DONE }]).await.unwrap();
    let _node = start(&store, "a");
    let retried = begin(&*store, BulkAction::Retry, JobFilter::default(), false).await;
    assert_eq!(counts(&wait_until_ended(&*store, retried).await), (OperationState::Done, 3, 3, 0));
    let urgent = BulkAction::Priority(Priority::new(7).unwrap());
    let urgent = begin(&*store, urgent, of_queue("a"), false).await;
    assert_eq!(
        counts(&wait_until_ended(&*store, urgent).await),
        (OperationState::Done, 3, 3, 0),
        "a completed job does not match"
    );
    for _ in 0..3 {
        assert_eq!(claim(&*store).await.unwrap().priority.get(), 7);
    }
    let none = JobFilter { states: vec![JobState::Completed], ..JobFilter::default() };
    let none = begin(&*store, BulkAction::Retry, none, false).await;
    assert_eq!(counts(&wait_until_ended(&*store, none).await), (OperationState::Done, 0, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_leader_continues_an_operation_at_its_cursor() {
    const JOBS: usize = 10_000;
    let database = tokio::task::block_in_place(|| TestDatabase::create("bulk").unwrap());
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap());
    store.enqueue_jobs(vec![in_queue("a"); JOBS]).await.unwrap();
    let node = start(&store, "a");
    let epoch = leading(&node).await.epoch;
    let id = begin(&*store, BulkAction::Cancel, of_queue("a"), false).await;
    wait_for("the operation has changed jobs", async || {
        store.operation(id).await.unwrap().filter(|now| now.changed > 0)
    })
    .await;
    // As if the leader's term had expired unnoticed.
    let usurper = NodeName::trusted("usurper");
    wait_for("another node leads", async || {
        let sql = "UPDATE orchestrix.leader_term SET ends_at = now() - interval '1 second'";
        tokio::task::block_in_place(|| psql(database.url(), sql).unwrap());
        let led = store.campaign_for_leadership(&usurper, Duration::from_secs(1), None).await.unwrap();
        matches!(led, Leadership::Leading(_)).then_some(())
    })
    .await;
    let blocked = store.operation(id).await.unwrap().unwrap();
    assert_eq!(blocked.state, OperationState::Running, "the operation ended before the takeover");
    let done = wait_until_ended(&*store, id).await;
    assert!(node.status().epoch > epoch, "the operation was finished by the first leader");
    assert_eq!((done.state, done.refused), (OperationState::Done, 0));
    assert_eq!(usize::try_from(done.changed), Ok(JOBS), "jobs were changed without being counted: {done:?}");
    let cancelled = JobFilter { states: vec![JobState::Cancelled], ..of_queue("a") };
    assert_eq!(count(&*store, &cancelled).await, JOBS);
    node.shutdown().await;
}

#[tokio::test]
async fn a_small_operation_does_not_wait_for_an_earlier_large_one() {
    let store = memory();
    store.enqueue_jobs((0..5_000).map(|_| in_queue("large")).collect()).await.unwrap();
    store.enqueue_jobs((0..10).map(|_| in_queue("small")).collect()).await.unwrap();
    let large = begin(&*store, BulkAction::Cancel, of_queue("large"), false).await;
    let small = begin(&*store, BulkAction::Cancel, of_queue("small"), false).await;
    let _node = start(&store, "a");
    let (large, small) = (wait_until_ended(&*store, large).await, wait_until_ended(&*store, small).await);
    assert_eq!(counts(&large), (OperationState::Done, 5_000, 5_000, 0));
    assert_eq!(counts(&small), (OperationState::Done, 10, 10, 0));
    assert!(small.finished_at < large.finished_at, "{:?} and {:?}", small.finished_at, large.finished_at);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_that_is_refused_repeatedly_at_one_cursor_fails_and_blocks_no_other() {
    let database = tokio::task::block_in_place(|| TestDatabase::create("bulk").unwrap());
    let short = Duration::from_millis(100);
    let limits = PostgresOptions { lock_timeout: short, ..PostgresOptions::new(database.url()) };
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(limits).await.unwrap());
    let held = store.enqueue_job(in_queue("held")).await.unwrap().id;
    store.enqueue_job(in_queue("free")).await.unwrap();
    let (client, connection) = tokio_postgres::connect(database.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN; SELECT FROM orchestrix.job WHERE queue = 'held' FOR UPDATE").await.unwrap();

    let refused = begin(&*store, BulkAction::Cancel, of_queue("held"), false).await;
    let free = begin(&*store, BulkAction::Cancel, of_queue("free"), false).await;
    let node = Coordinator::start(Arc::clone(&store), CoordinatorOptions { max_operation_refusals: 3, ..options("a") })
        .unwrap();
    let (refused, free) = (wait_until_ended(&*store, refused).await, wait_until_ended(&*store, free).await);
    assert_eq!(counts(&free), (OperationState::Done, 1, 1, 0));
    assert!(free.finished_at < refused.finished_at, "the free operation waited for the refused one");
    assert_eq!(counts(&refused), (OperationState::Failed, 0, 0, 0));
    let error = refused.error.unwrap();
    assert!(error.contains("refused 3 times in a row") && !error.contains("timeout"), "{error}");

    // An operation whose lock is released in time continues.
    let resumed = begin(&*store, BulkAction::Cancel, of_queue("held"), false).await;
    wait_for("the operation has had a turn", async || {
        let now = store.operation(resumed).await.unwrap().unwrap();
        (now.updated_at > now.created_at).then_some(())
    })
    .await;
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(counts(&wait_until_ended(&*store, resumed).await), (OperationState::Done, 1, 1, 0));
    assert_eq!(store.job(held).await.unwrap().unwrap().state, JobState::Cancelled);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_survives_an_outage_of_the_database() {
    const JOBS: usize = 10_000;
    const MAX_REFUSALS: u32 = 3;
    let mut server = tokio::task::block_in_place(|| PostgresServer::builder().start().unwrap());
    let store = PostgresStore::open(PostgresOptions::new(server.url("postgres"))).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    store.enqueue_jobs(vec![in_queue("a"); JOBS]).await.unwrap();
    let node = Coordinator::start(
        Arc::clone(&store),
        CoordinatorOptions { max_operation_refusals: MAX_REFUSALS, term: Duration::from_secs(30), ..options("a") },
    );
    let node = node.unwrap();
    leading(&node).await;
    let id = begin(&*store, BulkAction::Cancel, of_queue("a"), false).await;
    wait_for("the operation has changed jobs", async || {
        store.operation(id).await.unwrap().filter(|now| now.changed > 0)
    })
    .await;
    tokio::task::block_in_place(|| server.kill().unwrap());
    let failures = || node.status().services["advance_operations"].failures;
    let before = failures();
    // More often than the limit of refusals.
    let enough = before + u64::from(MAX_REFUSALS) + 1;
    wait_for("the service failed repeatedly", async || (failures() >= enough).then_some(())).await;
    let recovered_at = Timestamp::now();
    tokio::task::block_in_place(|| server.restart().unwrap());
    let done = wait_for("the operation has ended", async || {
        let now = store.operation(id).await.ok()??;
        (now.state != OperationState::Running).then_some(now)
    })
    .await;
    assert!(done.finished_at > Some(recovered_at), "the operation ended before the outage");
    assert_eq!((done.state, done.error.as_deref()), (OperationState::Done, None));
    node.shutdown().await;
    tokio::task::block_in_place(|| drop(server));
}

/// An operation whose leader waits in the middle of a page: it has changed the newer jobs and waits for a locked one.
struct BlockedOperation {
    database: TestDatabase,
    store: Arc<dyn Store>,
    node: Coordinator,
    operation: OperationId,
    locked: JobId,
    lock: tokio_postgres::Client,
}

impl BlockedOperation {
    const NEWER: usize = 250;

    async fn reach() -> Self {
        let database = tokio::task::block_in_place(|| TestDatabase::create("bulk").unwrap());
        let store: Arc<dyn Store> = Arc::new(PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap());
        let mut ids: Vec<JobId> =
            store.enqueue_jobs(vec![in_queue("a"); 400]).await.unwrap().iter().map(|job| job.id).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let locked = ids[Self::NEWER];
        let (lock, connection) = tokio_postgres::connect(database.url(), tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        lock.batch_execute(&format!("BEGIN; SELECT FROM orchestrix.job WHERE id = '{locked}' FOR UPDATE"))
            .await
            .unwrap();
        let operation = begin(&*store, BulkAction::Cancel, of_queue("a"), false).await;
        let node = start(&store, "a");
        let blocked = Self { database, store, node, operation, locked, lock };
        wait_for("the leader waits for the locked job", async || {
            let waiting =
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
            (blocked.sql(waiting) != "0").then_some(())
        })
        .await;
        blocked
    }

    fn sql(&self, sql: &str) -> String {
        tokio::task::block_in_place(|| psql(self.database.url(), sql).unwrap().trim().to_owned())
    }

    async fn find(&self) -> Operation {
        self.store.operation(self.operation).await.unwrap().unwrap()
    }

    async fn cancelled(&self) -> usize {
        count(&*self.store, &JobFilter { states: vec![JobState::Cancelled], ..of_queue("a") }).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_deposed_in_the_middle_of_a_page_changes_nothing_more() {
    let blocked = BlockedOperation::reach().await;
    let usurper = NodeName::trusted("usurper");
    wait_for("another node leads", async || {
        blocked.sql("UPDATE orchestrix.leader_term SET ends_at = now() - interval '1 second'");
        let led = blocked.store.campaign_for_leadership(&usurper, Duration::from_secs(3600), None).await.unwrap();
        matches!(led, Leadership::Leading(_)).then_some(())
    })
    .await;
    blocked.lock.batch_execute("ROLLBACK").await.unwrap();
    wait_for("the leader has stepped down", async || (!blocked.node.status().leading).then_some(())).await;
    wait_for("no transaction is open", async || {
        let active = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
                      AND (wait_event_type = 'Lock' OR state LIKE 'idle in transaction%')";
        (blocked.sql(active) == "0").then_some(())
    })
    .await;
    assert_eq!(blocked.store.job(blocked.locked).await.unwrap().unwrap().state, JobState::Pending);
    let now = blocked.find().await;
    assert_eq!(
        counts(&now),
        (OperationState::Running, BlockedOperation::NEWER as u64, BlockedOperation::NEWER as u64, 0)
    );
    assert_eq!(blocked.cancelled().await, BlockedOperation::NEWER, "exactly the counted jobs were changed");
    blocked.node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_aborted_in_the_middle_of_a_page_changes_nothing_more() {
    let blocked = BlockedOperation::reach().await;
    let stopped = blocked.store.abort_operation(blocked.operation).await.unwrap();
    assert_eq!(
        counts(&stopped),
        (OperationState::Aborted, BlockedOperation::NEWER as u64, BlockedOperation::NEWER as u64, 0)
    );
    blocked.lock.batch_execute("ROLLBACK").await.unwrap();
    let runs = || blocked.node.status().services["advance_operations"].runs;
    let before = runs();
    wait_for("the leader has run another step", async || (runs() > before + 1).then_some(())).await;
    assert!(blocked.node.status().leading, "aborting an operation deposed the leader");
    assert_eq!(blocked.store.job(blocked.locked).await.unwrap().unwrap().state, JobState::Pending);
    assert_eq!((blocked.find().await, blocked.cancelled().await), (stopped, BlockedOperation::NEWER));
    // Another operation changes the rest.
    let again = begin(&*blocked.store, BulkAction::Cancel, of_queue("a"), false).await;
    let left = 400 - BlockedOperation::NEWER as u64;
    assert_eq!(counts(&wait_until_ended(&*blocked.store, again).await), (OperationState::Done, left, left, 0));
    blocked.node.shutdown().await;
}
