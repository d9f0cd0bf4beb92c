//! Rows as domain types.

use std::time::Duration;

use orchestrix_core::{
    AttemptOutcome, AttemptRecord, Job, JobId, JobState, JobType, Json, LimitKey, NewJob, Priority, Progress, Queue,
    RetryPolicy, Tenant, Timestamp, WorkerName,
};
use orchestrix_store::{
    JobOptions, JobSummary, Result, StoreError,
    housekeeping::{MAX_SWEEP, check_limit},
};
use serde::Deserialize;
use tokio_postgres::Row;
use uuid::Uuid;

/// An element of the column `attempt_log`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attempt {
    attempt: u16,
    lease: i32,
    outcome: AttemptOutcome,
    to: JobState,
    worker: Option<WorkerName>,
    started_at: Timestamp,
    ended_at: Timestamp,
    error: Option<String>,
}

/// The error for a value that this version cannot read: it was written by hand or by a newer version.
pub(crate) fn corrupt(what: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Backend(format!("this version cannot read {what} in the database: {error}").into())
}

pub(crate) fn state(text: &str) -> Result<JobState> {
    text.parse().map_err(|error| corrupt("state", error))
}

pub(crate) fn priority(rank: i16) -> Result<Priority> {
    Priority::new(-i64::from(rank)).map_err(|error| corrupt("rank", error))
}

/// A smallint that a CHECK constraint keeps from being negative.
pub(crate) fn count(value: i16) -> u16 {
    u16::try_from(value).unwrap_or(0)
}

/// A number of milliseconds; a negative one counts as 0.
pub(crate) fn duration(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// Validates the limit of a sweep and converts it for the database.
pub(crate) fn sweep_limit(limit: usize) -> Result<i64> {
    check_limit(limit, MAX_SWEEP)?;
    Ok(limit as i64)
}

fn json<T: serde::de::DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| corrupt(what, error))
}

fn progress(text: Option<&str>) -> Result<Option<Progress>> {
    #[derive(Deserialize)]
    struct Stored {
        percent: Option<f64>,
        message: Option<String>,
    }
    let stored: Option<Stored> = text.map(|text| json("progress", text)).transpose()?;
    Ok(stored.map(|stored| Progress { percent: stored.percent, message: stored.message }))
}

fn options(row: &Row) -> Result<JobOptions> {
    JobOptions::read(row.get("options")).map_err(|error| corrupt("options", error))
}

/// Reads a row of `job_summary.sql`, `list_jobs.sql` or any statement with the same columns.
pub(crate) fn summary(row: &Row) -> Result<JobSummary> {
    let options = options(row)?;
    Ok(JobSummary {
        id: JobId::from_uuid(row.get("id")),
        state: state(row.get("state"))?,
        job_type: JobType::trusted(row.get("job_type")),
        queue: Queue::trusted(row.get("queue")),
        tenant: Tenant::trusted(row.get("tenant")),
        priority: priority(row.get("rank"))?,
        attempts: count(row.get("attempts")),
        max_attempts: count(row.get("max_attempts")),
        created_at: row.get("created_at"),
        updated_at: row.get("updated_at"),
        eligible_at: row.get("eligible_at"),
        started_at: row.get("started_at"),
        finished_at: row.get("finished_at"),
        worker: row.get::<_, Option<&str>>("worker").map(WorkerName::trusted),
        cancel_requested: row.get("cancel_requested"),
        progress: progress(row.get("progress"))?,
        reason: row.get("reason"),
        correlation_id: options.correlation_id,
        idempotency_key: options.idempotency_key,
        tags: options.tags,
    })
}

/// Reads a row of `get_job.sql`.
pub(crate) fn job(row: &Row) -> Result<Job> {
    let options = options(row)?;
    let attempts: Vec<Attempt> = row
        .get::<_, Option<&str>>("attempt_log")
        .map(|text| json("attempt_log", text))
        .transpose()?
        .unwrap_or_default();
    let parents = row.get::<_, Option<Vec<Uuid>>>("parents").unwrap_or_default();
    let summary = summary(row)?;
    Ok(Job {
        id: summary.id,
        state: summary.state,
        job_type: summary.job_type,
        queue: summary.queue,
        tenant: summary.tenant,
        priority: summary.priority,
        attempts: summary.attempts,
        max_attempts: summary.max_attempts,
        losses: count(row.get("losses")),
        created_at: summary.created_at,
        updated_at: summary.updated_at,
        eligible_at: summary.eligible_at,
        started_at: summary.started_at,
        finished_at: summary.finished_at,
        expires_at: row.get("expires_at"),
        lease_expires_at: row.get("lease_expires_at"),
        worker: summary.worker,
        leases: row.get("lease_counter"),
        cancel_requested: summary.cancel_requested,
        timeout: row.get::<_, Option<i64>>("timeout_ms").map(duration),
        lease: duration(row.get::<_, i32>("lease_ms").into()),
        retry: options.retry.unwrap_or_default(),
        payload: row.get::<_, Option<&str>>("payload").map_or_else(Json::null, Json::trusted),
        result: row.get::<_, Option<&str>>("result").map(Json::trusted),
        progress: summary.progress,
        checkpoint: row.get::<_, Option<&str>>("checkpoint").map(Json::trusted),
        reason: summary.reason,
        attempt_log: attempts
            .into_iter()
            .map(|a| AttemptRecord {
                attempt: a.attempt,
                lease: a.lease,
                outcome: a.outcome,
                led_to: a.to,
                worker: a.worker,
                started_at: a.started_at,
                ended_at: a.ended_at,
                error: a.error,
            })
            .collect(),
        depends_on: parents.into_iter().map(JobId::from_uuid).collect(),
        on_dependency_failure: options.on_dependency_failure,
        idempotency_key: options.idempotency_key,
        concurrency_key: row.get::<_, Option<&str>>("concurrency_key").map(LimitKey::trusted),
        rate_limit_key: row.get::<_, Option<&str>>("rate_limit_key").map(LimitKey::trusted),
        resources: options.resources,
        tags: summary.tags,
        correlation_id: summary.correlation_id,
        traceparent: options.traceparent,
    })
}

/// The retry policy of a job; the default if the row has none.
pub(crate) fn retry_policy(text: Option<&str>) -> Result<RetryPolicy> {
    Ok(text.map(|text| json("retry", text)).transpose()?.unwrap_or_default())
}

/// The default lease, which enqueue_jobs.sql repeats.
const _: () = assert!(NewJob::DEFAULT_LEASE.as_millis() == 30_000);
