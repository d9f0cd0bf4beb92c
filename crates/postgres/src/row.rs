//! Rows as the domain's types.

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

/// One record of the column `attempt_log`.
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

/// A row that this program cannot read: written by hand, or by a newer one.
pub(crate) fn corrupt(what: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Backend(format!("a row holds what this program does not know: {what}: {error}").into())
}

pub(crate) fn state(text: &str) -> Result<JobState> {
    text.parse().map_err(|error| corrupt("state", error))
}

pub(crate) fn priority(rank: i16) -> Result<Priority> {
    Priority::new(-i64::from(rank)).map_err(|error| corrupt("rank", error))
}

/// A smallint that a CHECK keeps from being negative.
pub(crate) fn count(value: i16) -> u16 {
    u16::try_from(value).unwrap_or(0)
}

/// Milliseconds; the past counts as none.
pub(crate) fn duration(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// The limit of a sweep as the database takes it.
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
    JobOptions::read(row.get(17)).map_err(|error| corrupt("options", error))
}

/// Reads what `summary.sql`, `summaries.sql` and `list.sql` select.
pub(crate) fn summary(row: &Row) -> Result<JobSummary> {
    let options = options(row)?;
    Ok(JobSummary {
        id: JobId::from_uuid(row.get(0)),
        state: state(row.get(1))?,
        job_type: JobType::trusted(row.get(2)),
        queue: Queue::trusted(row.get(3)),
        tenant: Tenant::trusted(row.get(4)),
        priority: priority(row.get(5))?,
        attempts: count(row.get(6)),
        max_attempts: count(row.get(7)),
        created_at: row.get(8),
        updated_at: row.get(9),
        eligible_at: row.get(10),
        started_at: row.get(11),
        finished_at: row.get(12),
        worker: row.get::<_, Option<&str>>(13).map(WorkerName::trusted),
        cancel_requested: row.get(14),
        progress: progress(row.get(15))?,
        reason: row.get(16),
        correlation_id: options.correlation_id,
        idempotency_key: options.idempotency_key,
        tags: options.tags,
    })
}

/// Reads what `get.sql` selects.
pub(crate) fn job(row: &Row) -> Result<Job> {
    let options = options(row)?;
    let attempts: Vec<Attempt> =
        row.get::<_, Option<&str>>(27).map(|text| json("attempt_log", text)).transpose()?.unwrap_or_default();
    let short = summary(row)?;
    Ok(Job {
        id: short.id,
        state: short.state,
        job_type: short.job_type,
        queue: short.queue,
        tenant: short.tenant,
        priority: short.priority,
        attempts: short.attempts,
        max_attempts: short.max_attempts,
        losses: count(row.get(18)),
        created_at: short.created_at,
        updated_at: short.updated_at,
        eligible_at: short.eligible_at,
        started_at: short.started_at,
        finished_at: short.finished_at,
        expires_at: row.get(19),
        lease_expires_at: row.get(20),
        worker: short.worker,
        leases: row.get(21),
        cancel_requested: short.cancel_requested,
        timeout: row.get::<_, Option<i64>>(22).map(duration),
        lease: duration(row.get::<_, i32>(23).into()),
        retry: options.retry.unwrap_or_default(),
        payload: row.get::<_, Option<&str>>(24).map_or_else(Json::null, Json::trusted),
        result: row.get::<_, Option<&str>>(25).map(Json::trusted),
        progress: short.progress,
        checkpoint: row.get::<_, Option<&str>>(26).map(Json::trusted),
        reason: short.reason,
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
        depends_on: row.get::<_, Option<Vec<Uuid>>>(30).unwrap_or_default().into_iter().map(JobId::from_uuid).collect(),
        on_dependency_failure: options.on_dependency_failure,
        idempotency_key: options.idempotency_key,
        concurrency_key: row.get::<_, Option<&str>>(28).map(LimitKey::trusted),
        rate_limit_key: row.get::<_, Option<&str>>(29).map(LimitKey::trusted),
        resources: options.resources,
        tags: short.tags,
        correlation_id: short.correlation_id,
        traceparent: options.traceparent,
    })
}

/// The retry policy of a row; the default unless it says otherwise.
pub(crate) fn retry_policy(text: Option<&str>) -> Result<RetryPolicy> {
    Ok(text.map(|text| json("retry", text)).transpose()?.unwrap_or_default())
}

/// The lease that jobs get unless they say otherwise, as record.sql spells it.
const _: () = assert!(NewJob::DEFAULT_LEASE.as_millis() == 30_000);
