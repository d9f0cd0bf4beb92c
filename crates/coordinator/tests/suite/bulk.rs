//! Operations on many jobs, worked off by whoever leads.

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

use crate::support::{claim, job, leading, options, start, until};

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
    let wanted = NewOperation { action, filter, dry_run, actor: "ann".into(), tenant: None };
    store.begin_operation(wanted).await.unwrap().id
}

async fn over(store: &dyn Store, id: OperationId) -> Operation {
    until("it is over", async || {
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
async fn every_job_that_matches_is_changed_and_no_other() {
    let store = memory();
    // More than two pages of one queue, and jobs of another between them.
    store.enqueue_jobs((0..2_402).map(|n| in_queue(if n % 2 == 0 { "a" } else { "b" })).collect()).await.unwrap();
    let dry = begin(&*store, BulkAction::Cancel, of_queue("a"), true).await;
    let real = begin(&*store, BulkAction::Cancel, of_queue("a"), false).await;
    let node = start(&store, "a");
    assert_eq!(counts(&over(&*store, dry).await), (OperationState::Done, 1_201, 0, 0));
    assert_eq!(counts(&over(&*store, real).await), (OperationState::Done, 1_201, 1_201, 0));
    let cancelled = JobFilter { states: vec![JobState::Cancelled], ..of_queue("a") };
    assert_eq!(count(&*store, &cancelled).await, 1_201);
    let pending = JobFilter { states: vec![JobState::Pending], ..of_queue("b") };
    assert_eq!(count(&*store, &pending).await, 1_201);
    let bulk = &node.status().services["bulk"];
    assert_eq!((bulk.moved, bulk.failures), (1_201, 0));
}

#[tokio::test]
async fn jobs_are_retried_and_made_urgent_where_they_can_be() {
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
    assert_eq!(counts(&over(&*store, retried).await), (OperationState::Done, 3, 3, 0));
    let urgent = BulkAction::Priority(Priority::new(7).unwrap());
    let urgent = begin(&*store, urgent, of_queue("a"), false).await;
    assert_eq!(counts(&over(&*store, urgent).await), (OperationState::Done, 3, 3, 0), "the completed one is no match");
    for _ in 0..3 {
        assert_eq!(claim(&*store).await.unwrap().priority.get(), 7);
    }
    let none = JobFilter { states: vec![JobState::Completed], ..JobFilter::default() };
    let none = begin(&*store, BulkAction::Retry, none, false).await;
    assert_eq!(counts(&over(&*store, none).await), (OperationState::Done, 0, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_goes_on_where_it_stood_when_another_took_over_in_the_middle() {
    const JOBS: usize = 10_000;
    let database = tokio::task::block_in_place(|| TestDatabase::create("bulk").unwrap());
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap());
    store.enqueue_jobs(vec![in_queue("a"); JOBS]).await.unwrap();
    let node = start(&store, "a");
    let epoch = leading(&node).await.epoch;
    let id = begin(&*store, BulkAction::Cancel, of_queue("a"), false).await;
    until("it has begun", async || store.operation(id).await.unwrap().filter(|now| now.changed > 0)).await;
    // As if its term had run out unnoticed.
    let usurper = NodeName::trusted("usurper");
    until("another leads", async || {
        let sql = "UPDATE orchestrix.leader_term SET ends_at = now() - interval '1 second'";
        tokio::task::block_in_place(|| psql(database.url(), sql).unwrap());
        let led = store.campaign_for_leadership(&usurper, Duration::from_secs(1), None).await.unwrap();
        matches!(led, Leadership::Leading(_)).then_some(())
    })
    .await;
    let middle = store.operation(id).await.unwrap().unwrap();
    assert_eq!(middle.state, OperationState::Running, "it was over too soon to tell anything");
    let done = over(&*store, id).await;
    assert!(node.status().epoch > epoch, "not by the leader of then");
    assert_eq!((done.state, done.refused), (OperationState::Done, 0));
    assert_eq!(usize::try_from(done.changed), Ok(JOBS), "nothing was done that was not counted: {done:?}");
    let cancelled = JobFilter { states: vec![JobState::Cancelled], ..of_queue("a") };
    assert_eq!(count(&*store, &cancelled).await, JOBS);
    node.shutdown().await;
}

#[tokio::test]
async fn a_small_operation_is_not_kept_waiting_by_a_large_one_that_came_first() {
    let store = memory();
    store.enqueue_jobs((0..5_000).map(|_| in_queue("large")).collect()).await.unwrap();
    store.enqueue_jobs((0..10).map(|_| in_queue("small")).collect()).await.unwrap();
    let large = begin(&*store, BulkAction::Cancel, of_queue("large"), false).await;
    let small = begin(&*store, BulkAction::Cancel, of_queue("small"), false).await;
    let _node = start(&store, "a");
    let (large, small) = (over(&*store, large).await, over(&*store, small).await);
    assert_eq!(counts(&large), (OperationState::Done, 5_000, 5_000, 0));
    assert_eq!(counts(&small), (OperationState::Done, 10, 10, 0));
    assert!(small.finished_at < large.finished_at, "{:?} and {:?}", small.finished_at, large.finished_at);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_that_is_refused_at_the_same_place_again_and_again_fails_and_holds_up_no_other() {
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
    let node = Coordinator::start(Arc::clone(&store), CoordinatorOptions { bulk_tries: 3, ..options("a") }).unwrap();
    let (refused, free) = (over(&*store, refused).await, over(&*store, free).await);
    assert_eq!(counts(&free), (OperationState::Done, 1, 1, 0));
    assert!(free.finished_at < refused.finished_at, "it did not wait");
    assert_eq!(counts(&refused), (OperationState::Failed, 0, 0, 0));
    let error = refused.error.unwrap();
    assert!(error.contains("refused 3 times in a row") && !error.contains("timeout"), "{error}");

    // One that is let go in time goes on.
    let patient = begin(&*store, BulkAction::Cancel, of_queue("held"), false).await;
    until("it has had a turn", async || {
        let now = store.operation(patient).await.unwrap().unwrap();
        (now.updated_at > now.created_at).then_some(())
    })
    .await;
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(counts(&over(&*store, patient).await), (OperationState::Done, 1, 1, 0));
    assert_eq!(store.job(held).await.unwrap().unwrap().state, JobState::Cancelled);
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_waits_for_a_database_that_is_away() {
    const JOBS: usize = 10_000;
    const TRIES: u32 = 3;
    let mut server = tokio::task::block_in_place(|| PostgresServer::builder().start().unwrap());
    let store = PostgresStore::open(PostgresOptions::new(server.url("postgres"))).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    store.enqueue_jobs(vec![in_queue("a"); JOBS]).await.unwrap();
    let node = Coordinator::start(
        Arc::clone(&store),
        CoordinatorOptions { bulk_tries: TRIES, term: Duration::from_secs(30), ..options("a") },
    );
    let node = node.unwrap();
    leading(&node).await;
    let id = begin(&*store, BulkAction::Cancel, of_queue("a"), false).await;
    until("it has begun", async || store.operation(id).await.unwrap().filter(|now| now.changed > 0)).await;
    tokio::task::block_in_place(|| server.kill().unwrap());
    let failures = || node.status().services["bulk"].failures;
    let before = failures();
    // More often than it may be refused.
    let enough = before + u64::from(TRIES) + 1;
    until("it failed again and again", async || (failures() >= enough).then_some(())).await;
    let back = Timestamp::now();
    tokio::task::block_in_place(|| server.restart().unwrap());
    let done = until("it is over", async || {
        let now = store.operation(id).await.ok()??;
        (now.state != OperationState::Running).then_some(now)
    })
    .await;
    assert!(done.finished_at > Some(back), "it was over too soon to tell anything");
    assert_eq!((done.state, done.error.as_deref()), (OperationState::Done, None));
    node.shutdown().await;
    tokio::task::block_in_place(|| drop(server));
}

/// A leader in the middle of a page: it has done what is newer than one job, which somebody has locked, and waits for that one.
struct Middle {
    database: TestDatabase,
    store: Arc<dyn Store>,
    node: Coordinator,
    operation: OperationId,
    locked: JobId,
    lock: tokio_postgres::Client,
}

impl Middle {
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
        let middle = Self { database, store, node, operation, locked, lock };
        until("it waits for the locked one", async || {
            let waiting =
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
            (middle.sql(waiting) != "0").then_some(())
        })
        .await;
        middle
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
async fn a_leader_that_is_deposed_in_the_middle_of_a_page_does_nothing_more() {
    let middle = Middle::reach().await;
    let usurper = NodeName::trusted("usurper");
    until("another leads", async || {
        middle.sql("UPDATE orchestrix.leader_term SET ends_at = now() - interval '1 second'");
        let led = middle.store.campaign_for_leadership(&usurper, Duration::from_secs(3600), None).await.unwrap();
        matches!(led, Leadership::Leading(_)).then_some(())
    })
    .await;
    middle.lock.batch_execute("ROLLBACK").await.unwrap();
    until("it knows", async || (!middle.node.status().leading).then_some(())).await;
    until("nothing is under way", async || {
        let active = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
                      AND (wait_event_type = 'Lock' OR state LIKE 'idle in transaction%')";
        (middle.sql(active) == "0").then_some(())
    })
    .await;
    assert_eq!(middle.store.job(middle.locked).await.unwrap().unwrap().state, JobState::Pending);
    let now = middle.find().await;
    assert_eq!(counts(&now), (OperationState::Running, Middle::NEWER as u64, Middle::NEWER as u64, 0));
    assert_eq!(middle.cancelled().await, Middle::NEWER, "what was done is what was counted");
    middle.node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_that_is_stopped_while_a_leader_works_on_it_does_nothing_more() {
    let middle = Middle::reach().await;
    let stopped = middle.store.abort_operation(middle.operation).await.unwrap();
    assert_eq!(counts(&stopped), (OperationState::Aborted, Middle::NEWER as u64, Middle::NEWER as u64, 0));
    middle.lock.batch_execute("ROLLBACK").await.unwrap();
    let runs = || middle.node.status().services["bulk"].runs;
    let before = runs();
    until("the leader has looked again", async || (runs() > before + 1).then_some(())).await;
    assert!(middle.node.status().leading, "there was nothing to step down for");
    assert_eq!(middle.store.job(middle.locked).await.unwrap().unwrap().state, JobState::Pending);
    assert_eq!((middle.find().await, middle.cancelled().await), (stopped, Middle::NEWER));
    // Another goes on with what is left.
    let again = begin(&*middle.store, BulkAction::Cancel, of_queue("a"), false).await;
    let left = 400 - Middle::NEWER as u64;
    assert_eq!(counts(&over(&*middle.store, again).await), (OperationState::Done, left, left, 0));
    middle.node.shutdown().await;
}
