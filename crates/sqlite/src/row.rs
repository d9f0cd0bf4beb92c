//! Rows of jobs in the domain's types.

use std::time::Duration;

use orchestrix_core::{
    AttemptRecord, Job, JobId, JobState, JobType, LeaseToken, Lifecycle, LimitKey, Priority, Progress, Queue,
    RetryPolicy, Tenant, Timestamp, WorkerName,
};
use orchestrix_store::{JobOptions, JobSummary, StoreError};
use rusqlite::Row;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    columns::{Columns, columns},
    error::{Result, corrupt},
    lanes::{ClaimKey, Lane},
    session::Session,
    statement::FIND_JOB,
};

/// A time as the file stores it: microseconds since 1970.
pub(crate) fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

/// A duration as the file stores it: whole milliseconds.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn timestamp(micros: i64) -> Result<Timestamp> {
    Ok(Timestamp::from_microsecond(micros).map_err(|error| corrupt("time", error))?)
}

pub(crate) fn duration(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

pub(crate) fn state(text: &str) -> Result<JobState> {
    Ok(text.parse().map_err(|error| corrupt("state", error))?)
}

pub(crate) fn priority(rank: i16) -> Result<Priority> {
    Ok(Priority::new(-i64::from(rank)).map_err(|error| corrupt("rank", error))?)
}

pub(crate) fn options(column: Option<&str>) -> Result<JobOptions> {
    Ok(JobOptions::read(column).map_err(|error| corrupt("options", error))?)
}

columns! {
    mod decision of FIND_JOB {
        state, queue, attempts, max_attempts, losses, cancel_requested, lease_counter, lease_secret, eligible_at,
        waits_for, has_dependents, worker, started_at, options, result, job_type, rank, tenant,
    }
}

/// The columns of a job that decisions about it need.
#[derive(Debug)]
pub(crate) struct JobRow {
    pub(crate) id: JobId,
    pub(crate) lane: Lane,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) counter: i32,
    pub(crate) secret: Option<Uuid>,
    pub(crate) eligible_at: Timestamp,
    /// The number of unfinished parents.
    pub(crate) waits_for: u32,
    pub(crate) has_dependents: bool,
    pub(crate) worker: Option<String>,
    pub(crate) started_at: Option<i64>,
    pub(crate) options: Option<String>,
    pub(crate) result: Option<String>,
}

impl JobRow {
    pub(crate) fn find(session: &Session<'_>, id: JobId) -> Result<Option<Self>> {
        session.first(FIND_JOB, [id.as_uuid()], |row| {
            let row = Columns(row);
            Ok(Self {
                id,
                lifecycle: Lifecycle {
                    state: row.state(decision::state)?,
                    attempts: row.get(decision::attempts)?,
                    max_attempts: row.get(decision::max_attempts)?,
                    losses: row.get(decision::losses)?,
                    cancel_requested: row.get(decision::cancel_requested)?,
                },
                lane: Lane {
                    queue: Queue::trusted(row.text(decision::queue)?),
                    job_type: JobType::trusted(row.text(decision::job_type)?),
                    tenant: Tenant::trusted(row.text(decision::tenant)?),
                    rank: row.get(decision::rank)?,
                },
                counter: row.get(decision::lease_counter)?,
                secret: row.get(decision::lease_secret)?,
                eligible_at: row.time(decision::eligible_at)?,
                waits_for: row.get(decision::waits_for)?,
                has_dependents: row.get(decision::has_dependents)?,
                worker: row.get(decision::worker)?,
                started_at: row.get(decision::started_at)?,
                options: row.get(decision::options)?,
                result: row.get(decision::result)?,
            })
        })
    }

    /// The claim key of the job, once it is eligible at `eligible_at`.
    pub(crate) fn claim_key(&self, eligible_at: Timestamp) -> ClaimKey {
        ClaimKey::new(eligible_at, self.id)
    }

    /// The row of a job, or `JobNotFound`.
    pub(crate) fn require(session: &Session<'_>, id: JobId) -> Result<Self> {
        Self::find(session, id)?.ok_or_else(|| StoreError::JobNotFound(id).into())
    }

    /// The state of a job alone.
    pub(crate) fn find_state(session: &Session<'_>, id: JobId) -> Result<Option<JobState>> {
        session.first(FIND_JOB, [id.as_uuid()], |row| Columns(row).state(decision::state))
    }

    /// Whether `token` is the token of the latest lease.
    pub(crate) fn was_leased_to(&self, token: &LeaseToken) -> bool {
        self.counter == token.counter && self.secret == Some(token.secret)
    }

    /// Whether `token` owns the lease now. An expired lease keeps its owner until it is reaped.
    pub(crate) fn is_owned_by(&self, token: &LeaseToken) -> bool {
        self.lifecycle.state.is_leased() && self.was_leased_to(token)
    }

    pub(crate) fn retry_policy(&self) -> Result<RetryPolicy> {
        Ok(options(self.options.as_deref())?.retry.unwrap_or_default())
    }
}

/// The JSON of the column `progress`.
#[derive(Serialize, Deserialize)]
struct StoredProgress {
    percent: Option<f64>,
    message: Option<String>,
}

pub(crate) fn write_progress(progress: &Progress) -> Result<String> {
    let stored = StoredProgress { percent: progress.percent, message: progress.message.clone() };
    Ok(serde_json::to_string(&stored).map_err(|error| corrupt("progress", error))?)
}

fn read_progress(column: Option<&str>) -> Result<Option<Progress>> {
    let stored: Option<StoredProgress> =
        column.map(serde_json::from_str).transpose().map_err(|error| corrupt("progress", error))?;
    Ok(stored.map(|StoredProgress { percent, message }| Progress { percent, message }))
}

columns! {
    /// All of them in `get_job.sql`; the others end with `options`.
    pub(crate) mod job_columns of JOB_SUMMARY, LIST_JOBS, LIST_DEAD_JOBS, GET_JOB {
        id, state, job_type, queue, tenant, rank, attempts, max_attempts, created_at, updated_at, eligible_at,
        started_at, finished_at, worker, cancel_requested, progress, reason, options,
        losses, expires_at, lease_expires_at, lease_counter, timeout_ms, lease_ms, payload, result, checkpoint,
        concurrency_key, rate_limit_key,
    }
}

/// Reads a row of `job_summary.sql`, `list_jobs.sql`, `list_dead_jobs.sql` or `get_job.sql`.
pub(crate) fn summary(row: &Row<'_>) -> Result<JobSummary> {
    let row = Columns(row);
    let options = options(row.text_or_null(job_columns::options)?)?;
    Ok(JobSummary {
        id: row.id(job_columns::id)?,
        state: row.state(job_columns::state)?,
        job_type: JobType::trusted(row.text(job_columns::job_type)?),
        queue: Queue::trusted(row.text(job_columns::queue)?),
        tenant: Tenant::trusted(row.text(job_columns::tenant)?),
        priority: priority(row.get(job_columns::rank)?)?,
        attempts: row.get(job_columns::attempts)?,
        max_attempts: row.get(job_columns::max_attempts)?,
        created_at: row.time(job_columns::created_at)?,
        updated_at: row.time(job_columns::updated_at)?,
        eligible_at: row.time(job_columns::eligible_at)?,
        started_at: row.time_or_null(job_columns::started_at)?,
        finished_at: row.time_or_null(job_columns::finished_at)?,
        worker: row.text_or_null(job_columns::worker)?.map(WorkerName::trusted),
        cancel_requested: row.get(job_columns::cancel_requested)?,
        progress: read_progress(row.text_or_null(job_columns::progress)?)?,
        reason: row.get(job_columns::reason)?,
        correlation_id: options.correlation_id,
        idempotency_key: options.idempotency_key,
        tags: options.tags,
    })
}

/// Reads a row of `get_job.sql`. Attempts and parents come from their own tables.
pub(crate) fn job(row: &Row<'_>, attempt_log: Vec<AttemptRecord>, depends_on: Vec<JobId>) -> Result<Job> {
    let summary = summary(row)?;
    let row = Columns(row);
    let options = options(row.text_or_null(job_columns::options)?)?;
    Ok(Job {
        id: summary.id,
        state: summary.state,
        job_type: summary.job_type,
        queue: summary.queue,
        tenant: summary.tenant,
        priority: summary.priority,
        attempts: summary.attempts,
        max_attempts: summary.max_attempts,
        losses: row.get(job_columns::losses)?,
        created_at: summary.created_at,
        updated_at: summary.updated_at,
        eligible_at: summary.eligible_at,
        started_at: summary.started_at,
        finished_at: summary.finished_at,
        expires_at: row.time_or_null(job_columns::expires_at)?,
        lease_expires_at: row.time_or_null(job_columns::lease_expires_at)?,
        worker: summary.worker,
        leases: row.get(job_columns::lease_counter)?,
        cancel_requested: summary.cancel_requested,
        timeout: row.get::<Option<i64>>(job_columns::timeout_ms)?.map(duration),
        lease: duration(row.get(job_columns::lease_ms)?),
        retry: options.retry.unwrap_or_default(),
        payload: row.json_or_null(job_columns::payload)?.unwrap_or_default(),
        result: row.json_or_null(job_columns::result)?,
        progress: summary.progress,
        checkpoint: row.json_or_null(job_columns::checkpoint)?,
        reason: summary.reason,
        attempt_log,
        depends_on,
        on_dependency_failure: options.on_dependency_failure,
        idempotency_key: options.idempotency_key,
        concurrency_key: row.text_or_null(job_columns::concurrency_key)?.map(LimitKey::trusted),
        rate_limit_key: row.text_or_null(job_columns::rate_limit_key)?.map(LimitKey::trusted),
        resources: options.resources,
        tags: summary.tags,
        correlation_id: summary.correlation_id,
        traceparent: options.traceparent,
    })
}
