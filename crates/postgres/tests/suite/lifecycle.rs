//! Every verb of a store, once.

use std::time::Duration;

use orchestrix_core::{JobState, Json, NewJob, Progress, Start};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{
    Directive, Fence, JobFilter, LeaseStatus, LogLevel, LogLine, Outcome, PageRequest, Presence, ProgressUpdate,
    Retention, WorkerInfo, prelude::*,
};
use tokio_postgres::Client;

use crate::{invariants, jobs::*};

/// Runs every verb at least once. `client` is a direct connection to the same database.
pub(crate) async fn run_all_verbs(store: &PostgresStore, client: &Client) {
    workers(store).await;
    one_job(store).await;
    ends(store, client).await;
    dependents(store).await;
    operators(store).await;
    invariants::assert_consistent(client).await;
    while store.prune_history(Fence::NONE, &Retention::default(), 1_000).await.unwrap().more {}
}

async fn workers(store: &PostgresStore) {
    let info = WorkerInfo { concurrency: 4, ..WorkerInfo::any(worker("w")) };
    store.register_worker(&info).await.unwrap();
    assert_eq!(store.heartbeat_worker(&info.name, Presence::free(3)).await.unwrap(), Some(Directive::Run));
    let page = store.list_workers(&PageRequest::first(10)).await.unwrap();
    assert_eq!((page.items.len(), page.items[0].free_slots), (1, 3));
    assert_eq!(store.forget_workers(Fence::NONE, Duration::from_secs(3600), 10).await.unwrap(), 0);
    assert!(store.remove_worker(&info.name, None).await.unwrap());
}

async fn one_job(store: &PostgresStore) {
    let payload = Json::parse("payload", &format!("\"{}\"", "x".repeat(2_000))).unwrap();
    let claimed = start(store, NewJob { payload: payload.clone(), ..keyed("k") }).await;
    assert_eq!(claimed.payload, payload);
    let again = store.enqueue_job(NewJob { payload, ..keyed("k") }).await.unwrap();
    assert_eq!((again.id, again.state, again.duplicate), (claimed.id(), JobState::Running, true));
    assert!(matches!(store.extend_leases(&[claimed.token]).await.unwrap()[0], LeaseStatus::Held(_)));
    let progress = Progress { percent: Some(50.0), message: Some("half".into()) };
    let update = ProgressUpdate { progress: Some(progress.clone()), checkpoint: Some(Json::trusted("[1]")) };
    store.record_progress(claimed.token, update).await.unwrap();
    let line = LogLine { at: None, level: LogLevel::Info, message: "hello".into() };
    store.append_logs(claimed.token, vec![line]).await.unwrap();
    let result = Some(Json::trusted("{\"n\":1}"));
    let done = Outcome::Complete { result: result.clone() };
    for _ in 0..2 {
        assert_eq!(
            finish(store, claimed.token, done.clone()).await,
            Ok(JobState::Completed),
            "a repeat gets the same answer"
        );
    }
    let job = get(store, claimed.id()).await;
    assert_eq!((job.progress, job.result), (Some(progress), result));
    assert_eq!(store.job_logs(job.id, &PageRequest::first(10)).await.unwrap().items.len(), 1);
    assert_eq!(store.job_summary(job.id).await.unwrap().unwrap().state, JobState::Completed);
}

async fn ends(store: &PostgresStore, client: &Client) {
    // One job with a failure, a snooze, a release, a lost lease and a timed-out attempt.
    let with_timeout = NewJob { timeout: Some(Duration::from_secs(60)), ..job("t") };
    let id = start_and_finish(store, with_timeout, Outcome::fail("once"), JobState::Retrying).await;
    for (outcome, state) in
        [(Outcome::Snooze(Duration::from_secs(60)), JobState::Scheduled), (Outcome::Release, JobState::Pending)]
    {
        make_due(store, client).await;
        assert_eq!(finish(store, claim_soon(store).await.token, outcome).await, Ok(state));
    }
    claim_soon(store).await;
    client.execute("UPDATE orchestrix.job SET lease_expires_at = now()", &[]).await.unwrap();
    assert_eq!(store.reap_leases(Fence::NONE, 10, 3).await.unwrap().count, 1);
    claim_soon(store).await;
    client.execute("UPDATE orchestrix.job SET timeout_at = now()", &[]).await.unwrap();
    assert_eq!(store.time_out_attempts(Fence::NONE, 10).await.unwrap().count, 1);
    make_due(store, client).await;
    let claimed = claim_soon(store).await;
    assert_eq!(finish(store, claimed.token, fatal()).await, Ok(JobState::Dead));
    assert_eq!(get(store, id).await.attempt_log.len(), 6);
    let expiring = NewJob { expires_at: Some("2001-01-01T00:00:00Z".parse().unwrap()), ..job("t") };
    enqueue(store, expiring).await;
    assert_eq!(store.expire_jobs(Fence::NONE, 10).await.unwrap().count, 1);
}

async fn start_and_finish(
    store: &PostgresStore,
    job: NewJob,
    outcome: Outcome,
    state: JobState,
) -> orchestrix_core::JobId {
    let claimed = start(store, job).await;
    assert_eq!(finish(store, claimed.token, outcome).await, Ok(state));
    claimed.id()
}

/// Makes all scheduled and retrying jobs due, and promotes them.
async fn make_due(store: &PostgresStore, client: &Client) {
    let sql = "UPDATE orchestrix.job SET eligible_at = now() WHERE state IN ('scheduled', 'retrying')";
    client.execute(sql, &[]).await.unwrap();
    store.promote_jobs(Fence::NONE, 10).await.unwrap();
}

async fn dependents(store: &PostgresStore) {
    let family = vec![
        NewJob { reference: Some("parent".into()), ..keyed("family") },
        NewJob { depends_on: vec![orchestrix_core::DependsOn::Reference("parent".into())], ..job("child") },
    ];
    let family = store.enqueue_jobs(family).await.unwrap();
    assert_eq!((family[0].state, family[1].state), (JobState::Pending, JobState::Blocked));
    let grandchild = store.enqueue_job(child_of(&[family[1].id])).await.unwrap();
    assert_eq!(grandchild.state, JobState::Blocked);
    for expected in [family[0].id, family[1].id, grandchild.id] {
        let claimed = claim_soon(store).await;
        assert_eq!(claimed.id(), expected);
        assert_eq!(finish(store, claimed.token, Outcome::DONE).await, Ok(JobState::Completed));
    }
    assert_eq!(store.unblock_jobs(Fence::NONE, 10).await.unwrap().count, 0);
}

async fn operators(store: &PostgresStore) {
    let held = enqueue(store, NewJob { hold: true, ..job("t") }).await;
    assert_eq!(store.release_held_job(held).await.unwrap(), JobState::Pending);
    assert_eq!(store.reprioritize_job(held, priority(5)).await.unwrap(), JobState::Pending);
    store.pause_queue(&queue("default")).await.unwrap();
    assert_eq!(store.paused_queues().await.unwrap(), [queue("default")]);
    assert!(claim(store, 10).await.is_empty());
    store.resume_queue(&queue("default")).await.unwrap();
    let claimed = claim_soon(store).await;
    assert_eq!(store.cancel_job(held).await.unwrap(), JobState::Running);
    assert!(matches!(store.extend_leases(&[claimed.token]).await.unwrap()[0], LeaseStatus::Cancel(_)));
    assert_eq!(finish(store, claimed.token, Outcome::Cancelled).await, Ok(JobState::Cancelled));
    assert_eq!(store.retry_job(held).await.unwrap(), JobState::Pending);
    assert_eq!(store.cancel_job(held).await.unwrap(), JobState::Cancelled);
    let dead = JobFilter { states: vec![JobState::Dead], ..JobFilter::default() };
    assert_eq!(store.retry_jobs(&dead, &PageRequest::first(10)).await.unwrap().items.len(), 1);
    let later = enqueue(store, NewJob { start: Start::After(Duration::from_secs(60)), ..job("t") }).await;
    let listed = store.list_jobs(&JobFilter::default(), &PageRequest::first(100)).await.unwrap();
    assert_eq!(listed.items[0].id, later, "the newest job comes first");
    let depths = store.queue_depths(&PageRequest::first(10)).await.unwrap().items;
    assert_eq!(depths[0].counts, [(JobState::Scheduled, 1), (JobState::Pending, 1)].into());
}
