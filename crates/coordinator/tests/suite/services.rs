//! The leader's services in real time, most of them on an in-memory store.

use std::{sync::Arc, time::Duration};

use orchestrix_core::{JobState, NewJob, Start, Timestamp, WorkerName};
use orchestrix_memory::MemoryStore;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{ClaimRequest, ClaimedJob, Outcome, OutcomeReport, PageRequest, Retention, Store, WorkerInfo};
use orchestrix_testkit::TestDatabase;

use crate::support::{claim, job, leading, options, start, wait_for};

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

async fn wait_for_state(store: &dyn Store, id: orchestrix_core::JobId, state: JobState) {
    wait_for(state.as_str(), async || store.job_summary(id).await.unwrap().filter(|job| job.state == state)).await;
}

#[tokio::test]
async fn a_delayed_job_becomes_claimable_at_its_start_time() {
    let store = memory();
    let node = start(&store, "a");
    leading(&node).await;
    for delay in [50, 1_000] {
        let delay = Duration::from_millis(delay);
        let enqueued = store.enqueue_job(NewJob { start: Start::After(delay), ..job("later") }).await.unwrap();
        let due = store.job_summary(enqueued.id).await.unwrap().unwrap().eligible_at;
        let claimed = wait_for("the job is claimable", async || claim(&*store).await).await;
        assert!(Timestamp::now() >= due, "the job was promoted before its start time");
        store.finish_attempts(vec![OutcomeReport { token: claimed.token, outcome: Outcome::DONE }]).await.unwrap();
    }
    let promoted = &node.status().services["promote_jobs"];
    assert_eq!((promoted.affected, promoted.failures), (2, 0));
}

#[tokio::test]
async fn a_failed_attempt_is_retried_after_its_back_off() {
    let store = memory();
    let _node = start(&store, "a");
    store.enqueue_job(job("fails")).await.unwrap();
    let first = wait_for("the job is claimable", async || claim(&*store).await).await;
    let outcome = Outcome::Fail { error: "no".into(), retryable: true, retry_after: Some(Duration::from_millis(100)) };
    store.finish_attempts(vec![OutcomeReport { token: first.token, outcome }]).await.unwrap();
    let second = wait_for("the job is claimable again", async || claim(&*store).await).await;
    assert_eq!(second.attempt, 2);
}

#[tokio::test]
async fn an_expired_lease_is_reaped_and_the_job_is_claimable_again() {
    let store = memory();
    let node = start(&store, "a");
    let lease = Duration::from_secs(1);
    store.enqueue_job(NewJob { lease, ..job("lost") }).await.unwrap();
    let first = wait_for("the job is claimable", async || claim(&*store).await).await;
    let second = wait_for("the job is claimable again", async || claim(&*store).await).await;
    assert_eq!((second.id(), second.attempt), (first.id(), 2));
    assert_eq!(node.status().services["reap_leases"].affected, 1);
}

#[tokio::test]
async fn an_attempt_times_out_and_an_expired_job_is_cancelled() {
    let store = memory();
    let _node = start(&store, "a");
    let slow = NewJob { timeout: Some(Duration::from_millis(100)), max_attempts: 1, ..job("slow") };
    let slow = store.enqueue_job(slow).await.unwrap().id;
    wait_for("the job is claimable", async || claim(&*store).await).await;
    let expires_at = Some(Timestamp::now() + Duration::from_millis(200));
    let start = Start::After(Duration::from_secs(3600));
    let late = store.enqueue_job(NewJob { expires_at, start, ..job("late") }).await.unwrap().id;
    wait_for_state(&*store, slow, JobState::Dead).await;
    wait_for_state(&*store, late, JobState::Cancelled).await;
}

#[tokio::test]
async fn finished_jobs_past_their_retention_and_dead_workers_are_removed() {
    let store = memory();
    store.enqueue_job(job("done")).await.unwrap();
    let claimed = claim(&*store).await.unwrap();
    store.finish_attempts(vec![OutcomeReport { token: claimed.token, outcome: Outcome::DONE }]).await.unwrap();
    let name = orchestrix_core::WorkerName::trusted("w");
    store.register_worker(&WorkerInfo::any(name)).await.unwrap();
    let short = Duration::from_millis(600);
    let retention = Retention { completed: short, ..Retention::default() };
    let options = orchestrix_coordinator::CoordinatorOptions { dead_after: short, retention, ..options("a") };
    tokio::time::sleep(short).await;
    let _node = orchestrix_coordinator::Coordinator::start(Arc::clone(&store), options).unwrap();
    wait_for("the job is removed", async || store.job(claimed.id()).await.unwrap().is_none().then_some(())).await;
    wait_for("the worker is removed", async || {
        store.list_workers(&PageRequest::first(10)).await.unwrap().items.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_leader_vacuums_the_tables_of_finished_jobs() {
    let database = TestDatabase::create("store").expect("a private PostgreSQL");
    let store = PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let node = start(&store, "a");
    leading(&node).await;
    wait_for("the leader has vacuumed a table", async || {
        store.enqueue_jobs(vec![job("t"); 1_000]).await.unwrap();
        let request = ClaimRequest::any(WorkerName::trusted("w"), 1_000);
        let claimed = store.claim_jobs(&request).await.unwrap();
        let done = |job: &ClaimedJob| OutcomeReport { token: job.token, outcome: Outcome::DONE };
        store.finish_attempts(claimed.iter().map(done).collect()).await.unwrap();
        node.status().services.get("vacuum_tables").filter(|service| service.affected > 0).map(drop)
    })
    .await;
    node.shutdown().await;
}
