//! Rows as the domain's types.

use std::time::Duration;

use orchestrix_core::{
    AttemptRecord, Job, JobId, JobState, JobType, Json, LeaseToken, Lifecycle, LimitKey, Priority, Progress, Queue,
    RetryPolicy, Tenant, Timestamp, WorkerName,
};
use orchestrix_store::{JobOptions, JobSummary, StoreError};
use rusqlite::{Row, types::FromSql};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    error::{Result, corrupt},
    session::Session,
    statement::FIND,
};

/// A time as the file keeps it.
pub(crate) fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

/// Whole milliseconds.
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

pub(crate) fn priority(rank: i64) -> Result<Priority> {
    Ok(Priority::new(-rank).map_err(|error| corrupt("rank", error))?)
}

pub(crate) fn options(column: Option<&str>) -> Result<JobOptions> {
    Ok(JobOptions::read(column).map_err(|error| corrupt("options", error))?)
}

/// Columns by position, in the domain's types.
pub(crate) struct Columns<'a>(pub(crate) &'a Row<'a>);

impl<'a> Columns<'a> {
    pub(crate) fn get<T: FromSql>(&self, column: usize) -> Result<T> {
        Ok(self.0.get(column)?)
    }

    pub(crate) fn text(&self, column: usize) -> Result<&'a str> {
        self.0.get_ref(column)?.as_str().map_err(|error| corrupt("text", error).into())
    }

    pub(crate) fn text_or_null(&self, column: usize) -> Result<Option<&'a str>> {
        self.0.get_ref(column)?.as_str_or_null().map_err(|error| corrupt("text", error).into())
    }

    pub(crate) fn id(&self, column: usize) -> Result<JobId> {
        self.get(column).map(JobId::from_uuid)
    }

    pub(crate) fn state(&self, column: usize) -> Result<JobState> {
        state(self.text(column)?)
    }

    pub(crate) fn time(&self, column: usize) -> Result<Timestamp> {
        timestamp(self.get(column)?)
    }

    pub(crate) fn time_or_null(&self, column: usize) -> Result<Option<Timestamp>> {
        self.get::<Option<i64>>(column)?.map(timestamp).transpose()
    }

    pub(crate) fn json_or_null(&self, column: usize) -> Result<Option<Json>> {
        Ok(self.text_or_null(column)?.map(Json::trusted))
    }
}

/// A job as far as decisions about it are concerned.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) id: JobId,
    pub(crate) queue: Queue,
    pub(crate) job_type: JobType,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) counter: i32,
    pub(crate) secret: Option<Uuid>,
    pub(crate) eligible_at: Timestamp,
    pub(crate) waits_for: u32,
    pub(crate) has_dependents: bool,
    pub(crate) worker: Option<String>,
    pub(crate) started_at: Option<i64>,
    pub(crate) options: Option<String>,
    pub(crate) result: Option<String>,
}

impl Found {
    /// Looks a job up.
    pub(crate) fn read(session: &Session<'_>, id: JobId) -> Result<Option<Self>> {
        session.first(FIND, [id.as_uuid()], |row| {
            let row = Columns(row);
            Ok(Self {
                id,
                lifecycle: Lifecycle {
                    state: row.state(0)?,
                    attempts: row.get(2)?,
                    max_attempts: row.get(3)?,
                    losses: row.get(4)?,
                    cancel_requested: row.get(5)?,
                },
                queue: Queue::trusted(row.text(1)?),
                counter: row.get(6)?,
                secret: row.get(7)?,
                eligible_at: row.time(8)?,
                waits_for: row.get(9)?,
                has_dependents: row.get(10)?,
                worker: row.get(11)?,
                started_at: row.get(12)?,
                options: row.get(13)?,
                result: row.get(14)?,
                job_type: JobType::trusted(row.text(15)?),
            })
        })
    }

    /// Looks up a job that should be there.
    pub(crate) fn expect(session: &Session<'_>, id: JobId) -> Result<Self> {
        Self::read(session, id)?.ok_or_else(|| StoreError::JobNotFound(id).into())
    }

    /// Whether `token` is that of its latest lease.
    pub(crate) fn was_leased_to(&self, token: &LeaseToken) -> bool {
        self.counter == token.counter && self.secret == Some(token.secret)
    }

    /// Whether `token` owns it now. An expired lease owns it until somebody takes it back.
    pub(crate) fn is_owned_by(&self, token: &LeaseToken) -> bool {
        self.lifecycle.state.is_leased() && self.was_leased_to(token)
    }

    pub(crate) fn retry(&self) -> Result<RetryPolicy> {
        Ok(options(self.options.as_deref())?.retry.unwrap_or_default())
    }
}

/// The column `progress`.
#[derive(Serialize, Deserialize)]
struct StoredProgress {
    percent: Option<f64>,
    message: Option<String>,
}

pub(crate) fn write_progress(progress: &Progress) -> Result<String> {
    let stored = StoredProgress { percent: progress.percent, message: progress.message.clone() };
    Ok(serde_json::to_string(&stored).map_err(|error| corrupt("progress", error))?)
}

fn progress(column: Option<&str>) -> Result<Option<Progress>> {
    let stored: Option<StoredProgress> =
        column.map(serde_json::from_str).transpose().map_err(|error| corrupt("progress", error))?;
    Ok(stored.map(|StoredProgress { percent, message }| Progress { percent, message }))
}

/// Reads what `summary.sql` and the lists select.
pub(crate) fn summary(row: &Row<'_>) -> Result<JobSummary> {
    let row = Columns(row);
    let options = options(row.text_or_null(17)?)?;
    Ok(JobSummary {
        id: row.id(0)?,
        state: row.state(1)?,
        job_type: JobType::trusted(row.text(2)?),
        queue: Queue::trusted(row.text(3)?),
        tenant: Tenant::trusted(row.text(4)?),
        priority: priority(row.get(5)?)?,
        attempts: row.get(6)?,
        max_attempts: row.get(7)?,
        created_at: row.time(8)?,
        updated_at: row.time(9)?,
        eligible_at: row.time(10)?,
        started_at: row.time_or_null(11)?,
        finished_at: row.time_or_null(12)?,
        worker: row.text_or_null(13)?.map(WorkerName::trusted),
        cancel_requested: row.get(14)?,
        progress: progress(row.text_or_null(15)?)?,
        reason: row.get(16)?,
        correlation_id: options.correlation_id,
        idempotency_key: options.idempotency_key,
        tags: options.tags,
    })
}

/// Reads what `get.sql` selects; attempts and parents are in tables of their own.
pub(crate) fn job(row: &Row<'_>, attempt_log: Vec<AttemptRecord>, depends_on: Vec<JobId>) -> Result<Job> {
    let short = summary(row)?;
    let row = Columns(row);
    let options = options(row.text_or_null(17)?)?;
    Ok(Job {
        id: short.id,
        state: short.state,
        job_type: short.job_type,
        queue: short.queue,
        tenant: short.tenant,
        priority: short.priority,
        attempts: short.attempts,
        max_attempts: short.max_attempts,
        losses: row.get(18)?,
        created_at: short.created_at,
        updated_at: short.updated_at,
        eligible_at: short.eligible_at,
        started_at: short.started_at,
        finished_at: short.finished_at,
        expires_at: row.time_or_null(19)?,
        lease_expires_at: row.time_or_null(20)?,
        worker: short.worker,
        leases: row.get(21)?,
        cancel_requested: short.cancel_requested,
        timeout: row.get::<Option<i64>>(22)?.map(duration),
        lease: duration(row.get(23)?),
        retry: options.retry.unwrap_or_default(),
        payload: row.json_or_null(24)?.unwrap_or_default(),
        result: row.json_or_null(25)?,
        progress: short.progress,
        checkpoint: row.json_or_null(26)?,
        reason: short.reason,
        attempt_log,
        depends_on,
        on_dependency_failure: options.on_dependency_failure,
        idempotency_key: options.idempotency_key,
        concurrency_key: row.text_or_null(27)?.map(LimitKey::trusted),
        rate_limit_key: row.text_or_null(28)?.map(LimitKey::trusted),
        resources: options.resources,
        tags: short.tags,
        correlation_id: short.correlation_id,
        traceparent: options.traceparent,
    })
}
