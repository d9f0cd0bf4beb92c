//! Shorthand for tests: jobs, and store calls that must succeed.

use std::{collections::HashSet, future::Future, sync::Arc};

use orchestrix_core::{
    DependsOn, IdempotencyKey, JobId, JobState, JobType, Json, LeaseToken, NewJob, Queue, WorkerName,
};
use orchestrix_sqlite::SqliteStore;
use orchestrix_store::{ClaimRequest, ClaimedJob, FinishError, Outcome, OutcomeReport, prelude::*};
use rusqlite::Connection;
use tokio::{sync::Barrier, task::JoinSet};

/// A job with every default.
pub(crate) fn job(job_type: &str) -> NewJob {
    NewJob::new(JobType::new(job_type).expect("a valid type"))
}

/// A job with enough attempts to survive any number of crashes.
pub(crate) fn crash_tolerant() -> NewJob {
    NewJob { max_attempts: NewJob::MAX_ATTEMPTS, ..job("t") }
}

pub(crate) fn keyed(key: &str) -> NewJob {
    NewJob { idempotency_key: Some(IdempotencyKey::new(key).expect("a valid key")), ..job("keyed") }
}

/// A job that depends on others.
pub(crate) fn child_of(parents: &[JobId]) -> NewJob {
    NewJob { depends_on: parents.iter().copied().map(DependsOn::Job).collect(), ..job("child") }
}

/// A payload of this many bytes.
pub(crate) fn payload(bytes: usize) -> Json {
    Json::trusted(&format!("{:?}", "x".repeat(bytes.saturating_sub(2))))
}

pub(crate) fn queue(name: &str) -> Queue {
    Queue::new(name).expect("a valid queue")
}

pub(crate) fn worker(name: &str) -> WorkerName {
    WorkerName::new(name).expect("a valid name")
}

pub(crate) async fn enqueue(store: &SqliteStore, job: NewJob) -> JobId {
    store.enqueue_job(job).await.expect("a valid job").id
}

pub(crate) async fn claim(store: &SqliteStore, limit: usize) -> Vec<LeaseToken> {
    let claimed = store.claim_jobs(&ClaimRequest::any(worker("w"), limit)).await.expect("a valid request");
    claimed.iter().map(|claimed: &ClaimedJob| claimed.token).collect()
}

/// Claims until no job is left.
pub(crate) async fn claim_all(store: &SqliteStore) -> Vec<LeaseToken> {
    let mut all = Vec::new();
    loop {
        let some = claim(store, 1_000).await;
        if some.is_empty() {
            return all;
        }
        all.extend(some);
    }
}

pub(crate) async fn complete(store: &SqliteStore, tokens: &[LeaseToken]) -> Vec<Result<JobState, FinishError>> {
    let items = tokens.iter().map(|token| OutcomeReport { token: *token, outcome: Outcome::DONE }).collect();
    store.finish_attempts(items).await.expect("a reply")
}

/// The latest token of every job in `state`, read by SQL.
pub(crate) fn tokens_in(connection: &Connection, state: &str) -> Vec<LeaseToken> {
    let mut statement = connection.prepare("SELECT id, lease_counter, lease_secret FROM job WHERE state = ?1").unwrap();
    let token = |row: &rusqlite::Row<'_>| {
        Ok(LeaseToken { job: JobId::from_uuid(row.get(0)?), counter: row.get(1)?, secret: row.get(2)? })
    };
    statement.query_map([state], token).unwrap().collect::<Result<_, _>>().unwrap()
}

/// The ids of all jobs in the file, read by SQL.
pub(crate) fn ids(connection: &Connection) -> HashSet<JobId> {
    let mut statement = connection.prepare("SELECT id FROM job").unwrap();
    statement.query_map((), |row| row.get(0).map(JobId::from_uuid)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Makes every lease expire, by SQL, and returns how many there were.
pub(crate) fn expire_leases(connection: &Connection) -> usize {
    connection.execute("UPDATE job SET lease_expires_at = 1 WHERE state = 'running'", ()).unwrap()
}

/// Runs tasks that start at the same time and returns their results in order.
pub(crate) async fn run_concurrently<T, F>(tasks: impl IntoIterator<Item = F>) -> Vec<T>
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
    let mut results = running.join_all().await;
    results.sort_unstable_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, result)| result).collect()
}
