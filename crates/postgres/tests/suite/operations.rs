//! Operations that this version cannot read, and operations on locked jobs.

use std::time::Duration;

use orchestrix_core::{JobId, JobState, JobType, NewJob, OperationId, Priority};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{
    BulkAction, Fence, JobFilter, NewOperation, OperationEnd, OperationState, OperationStep, PageRequest, StoreError,
    prelude::*,
};

use crate::support;

fn new_operation() -> NewOperation {
    let (action, filter, actor) = (BulkAction::Cancel, JobFilter::default(), "ann".into());
    NewOperation { action, filter, dry_run: true, actor, tenant: None }
}

async fn begin(store: &PostgresStore) -> OperationId {
    store.begin_operation(new_operation()).await.expect("a valid operation").id
}

#[tokio::test]
async fn an_unreadable_operation_is_left_out_of_lists_and_does_not_hide_others() {
    let (store, database) = support::store().await;
    let client = support::connect(database.url()).await;
    let [bad, good, last] = [begin(&store).await, begin(&store).await, begin(&store).await];
    client
        .execute("UPDATE orchestrix.operation SET filter = '{\"new\": 1}' WHERE id = $1", &[&bad.as_uuid()])
        .await
        .unwrap();
    let open = async |limit| {
        let open = store.open_operations(limit).await.expect("the readable operations");
        open.into_iter().map(|operation| operation.id).collect::<Vec<_>>()
    };
    assert_eq!(open(1).await, [good], "the unreadable one comes first");
    assert_eq!(open(100).await, [good, last]);
    let first = store.list_operations(None, &PageRequest::first(2)).await.expect("a page");
    assert_eq!(first.items.iter().map(|operation| operation.id).collect::<Vec<_>>(), [last, good]);
    let rest =
        store.list_operations(None, &PageRequest::after(first.next.expect("there are more"), 2)).await.expect("a page");
    assert_eq!((rest.items, rest.next), (vec![], None));
    // The unreadable one counts towards the limit.
    for _ in 3..NewOperation::MAX_OPEN_EACH {
        begin(&store).await;
    }
    store.begin_operation(new_operation()).await.expect_err("the limit is reached");
}

#[tokio::test]
async fn a_step_ends_before_a_locked_job_and_the_next_step_waits_for_that_job() {
    let database = support::database();
    let options = PostgresOptions { lock_timeout: Duration::from_millis(100), ..PostgresOptions::new(database.url()) };
    let store = PostgresStore::open(options).await.expect("a store");
    let mut client = support::connect(database.url()).await;
    let urgent = BulkAction::Priority(Priority::new(7).unwrap());
    for (action, table) in [(urgent, "job"), (BulkAction::Cancel, "job"), (BulkAction::Retry, "history")] {
        let finished = match action {
            BulkAction::Retry => store.list_jobs(&JobFilter::default(), &PageRequest::first(5)).await.unwrap().items,
            _ => Vec::new(),
        };
        let mut jobs: Vec<JobId> = finished.iter().map(|job| job.id).collect();
        if jobs.is_empty() {
            let new = vec![NewJob::new(JobType::trusted("t")); 5];
            jobs = store.enqueue_jobs(new).await.unwrap().iter().map(|job| job.id).collect();
            jobs.sort_unstable_by(|a, b| b.cmp(a));
        }
        let id = store.begin_operation(NewOperation { action, dry_run: false, ..new_operation() }).await.unwrap().id;
        let lock = format!("SELECT id FROM orchestrix.{table} WHERE id = $1 FOR UPDATE");
        let held = client.transaction().await.unwrap();
        held.query_one(&lock, &[&jobs[2].as_uuid()]).await.expect("the job exists");
        let step = |from: Option<JobId>, jobs: &[JobId]| OperationStep {
            from_cursor: from,
            cursor: jobs.last().copied(),
            jobs: jobs.to_vec(),
            end: Some(OperationEnd::Done),
        };
        let first = store
            .advance_operation(Fence::NONE, id, step(None, &jobs))
            .await
            .expect("the step ends before the locked job");
        assert_eq!((first.state, first.matched, first.changed), (OperationState::Running, 2, 2), "{action:?}");
        assert_eq!(first.cursor, Some(jobs[1]));
        let refused = store.advance_operation(Fence::NONE, id, step(first.cursor, &jobs[2..])).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{action:?}: {refused:?}");
        assert_eq!(store.operation(id).await.unwrap().unwrap(), first, "the failed step changed nothing");
        held.rollback().await.unwrap();
        let last = store
            .advance_operation(Fence::NONE, id, step(first.cursor, &jobs[2..]))
            .await
            .expect("the job is unlocked");
        assert_eq!((last.state, last.matched, last.changed), (OperationState::Done, 5, 5), "{action:?}");
    }
    let pending = JobFilter { states: vec![JobState::Pending], ..JobFilter::default() };
    assert_eq!(
        store.list_jobs(&pending, &PageRequest::first(100)).await.unwrap().items.len(),
        10,
        "five retried and five never cancelled"
    );
}
