//! Test helpers: several stores on one database, short constructors of jobs, and steps that must succeed.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use orchestrix_core::{
    DependsOn, IdempotencyKey, Job, JobId, JobState, JobType, LeaseToken, NewJob, Priority, Queue, RetryPolicy,
    WorkerName,
};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{ClaimRequest, ClaimedJob, FinishError, Outcome, OutcomeReport, prelude::*};
use tokio::{sync::Barrier, task::JoinSet};

use crate::locks::LIMIT;

/// A store with few connections and long timeouts, so that a busy machine does not turn a wait into an error.
pub(crate) async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(options(url)).await.expect("a store")
}

/// Several stores on one database, each with its own connections and lanes, as in several processes.
pub(crate) async fn open_many<const N: usize>(url: &str) -> [PostgresStore; N] {
    let mut stores = Vec::with_capacity(N);
    for _ in 0..N {
        stores.push(open(url).await);
    }
    stores.try_into().expect("N stores were opened")
}

/// The options of [`open`]. The store does not listen, so it finds jobs of other stores only by polling.
pub(crate) fn options(url: &str) -> PostgresOptions {
    PostgresOptions {
        connections: 4,
        lock_timeout: Duration::from_secs(60),
        statement_timeout: Duration::from_secs(90),
        listen: false,
        ..PostgresOptions::new(url)
    }
}

/// A job with every default, except that its back-off has no jitter.
pub(crate) fn job(job_type: &str) -> NewJob {
    NewJob {
        retry: RetryPolicy { jitter: 0.0, ..RetryPolicy::default() },
        ..NewJob::new(JobType::new(job_type).expect("a valid type"))
    }
}

pub(crate) fn keyed(key: &str) -> NewJob {
    NewJob { idempotency_key: Some(IdempotencyKey::new(key).expect("a valid key")), ..job("keyed") }
}

/// A job that depends on others.
pub(crate) fn child_of(parents: &[JobId]) -> NewJob {
    NewJob { depends_on: parents.iter().copied().map(DependsOn::Job).collect(), ..job("child") }
}

pub(crate) fn queue(name: &str) -> Queue {
    Queue::new(name).expect("a valid queue")
}

pub(crate) fn priority(value: i64) -> Priority {
    Priority::new(value).expect("a valid priority")
}

pub(crate) fn worker(name: &str) -> WorkerName {
    WorkerName::new(name).expect("a valid name")
}

/// A failure that is not retried.
pub(crate) fn fatal() -> Outcome {
    Outcome::Fail { error: "no use".into(), retryable: false, retry_after: None }
}

pub(crate) async fn enqueue(store: &PostgresStore, job: NewJob) -> JobId {
    store.enqueue_job(job).await.expect("a valid job").id
}

pub(crate) async fn claim(store: &PostgresStore, limit: usize) -> Vec<ClaimedJob> {
    store.claim_jobs(&ClaimRequest::any(worker("w"), limit)).await.expect("a valid request")
}

/// Claims until nothing is found. Jobs that committed late, behind a lane cursor, may be left.
pub(crate) async fn claim_all(store: &PostgresStore) -> Vec<ClaimedJob> {
    let mut all = Vec::new();
    loop {
        let some = claim(store, 1_000).await;
        if some.is_empty() {
            return all;
        }
        all.extend(some);
    }
}

/// Claims the only claimable job, by polling: another store may have made it claimable.
pub(crate) async fn claim_soon(store: &PostgresStore) -> ClaimedJob {
    let begun = Instant::now();
    loop {
        let mut claimed = claim(store, 10).await;
        assert!(claimed.len() < 2, "exactly one job should be claimable");
        if let Some(claimed) = claimed.pop() {
            return claimed;
        }
        assert!(begun.elapsed() < LIMIT, "nothing to claim within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Enqueues a job and claims it: the only claimable one.
pub(crate) async fn start(store: &PostgresStore, job: NewJob) -> ClaimedJob {
    let id = enqueue(store, job).await;
    let mut claimed = claim(store, 10).await;
    assert_eq!(claimed.len(), 1, "exactly one job should be claimable");
    assert_eq!(claimed[0].id(), id);
    claimed.remove(0)
}

/// Enqueues many jobs and claims them all; returns their tokens.
pub(crate) async fn start_many(store: &PostgresStore, job: &NewJob, n: usize) -> Vec<LeaseToken> {
    store.enqueue_jobs(vec![job.clone(); n]).await.expect("valid jobs");
    let claimed = claim_all(store).await;
    assert_eq!(claimed.len(), n);
    claimed.into_iter().map(|claimed| claimed.token).collect()
}

pub(crate) async fn finish(
    store: &PostgresStore,
    token: LeaseToken,
    outcome: Outcome,
) -> Result<JobState, FinishError> {
    let mut answers = store.finish_attempts(vec![OutcomeReport { token, outcome }]).await.expect("the store answers");
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

pub(crate) async fn get(store: &PostgresStore, id: JobId) -> Job {
    store.job(id).await.expect("the store answers").expect("the job exists")
}

pub(crate) async fn state(store: &PostgresStore, id: JobId) -> JobState {
    get(store, id).await.state
}

/// Runs tasks that start at the same time; returns their results in order.
pub(crate) async fn together<T, F>(tasks: impl IntoIterator<Item = F>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<F> = tasks.into_iter().collect();
    let barrier = Arc::new(Barrier::new(tasks.len()));
    let mut running = JoinSet::new();
    for (i, task) in tasks.into_iter().enumerate() {
        let barrier = barrier.clone();
        running.spawn(async move {
            barrier.wait().await;
            (i, task.await)
        });
    }
    let mut answers = running.join_all().await;
    answers.sort_unstable_by_key(|(i, _)| *i);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
