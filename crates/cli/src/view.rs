//! Jobs as they are printed: camelCase, durations in seconds, payloads exactly as they were given.

use std::{collections::BTreeMap, time::Duration};

use orchestrix_core::{
    AttemptOutcome, AttemptRecord, IdempotencyKey, Job, JobId, JobState, JobStatus, JobType, Json, LimitKey,
    OnDependencyFailure, Priority, Progress, Queue, Resources, RetryPolicy, Tag, Tenant, Timestamp, WorkerName,
};
use orchestrix_store::JobSummary;
use serde::{Serialize, Serializer, ser::Error};
use serde_json::value::RawValue;

/// A job in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SummaryView {
    pub(crate) job_id: JobId,
    pub(crate) job_type: JobType,
    pub(crate) status: JobStatus,
    pub(crate) state: JobState,
    pub(crate) queue: Queue,
    pub(crate) tenant: Tenant,
    pub(crate) priority: Priority,
    pub(crate) attempts_used: u16,
    pub(crate) max_attempts: u16,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) eligible_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) finished_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worker_id: Option<WorkerName>,
    pub(crate) cancel_requested: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<ProgressView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    pub(crate) tags: Vec<Tag>,
}

/// How far a job has come.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

/// All of one job.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobView {
    #[serde(flatten)]
    pub(crate) summary: SummaryView,
    #[serde(serialize_with = "as_given")]
    pub(crate) payload: Json,
    #[serde(serialize_with = "as_given_or_null")]
    pub(crate) result: Option<Json>,
    #[serde(serialize_with = "as_given_or_null", skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint: Option<Json>,
    pub(crate) attempts: Vec<AttemptView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_seconds: Option<f64>,
    pub(crate) lease_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lease_expires_at: Option<Timestamp>,
    pub(crate) leases: i32,
    pub(crate) leases_lost: u16,
    pub(crate) retry: RetryView,
    pub(crate) depends_on: Vec<JobId>,
    pub(crate) on_dependency_failure: OnDependencyFailure,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) concurrency_key: Option<LimitKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_limit_key: Option<LimitKey>,
    pub(crate) resources: BTreeMap<LimitKey, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) traceparent: Option<String>,
    /// What keeps it waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// How long to wait between attempts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetryView {
    pub(crate) base_seconds: f64,
    pub(crate) multiplier: f64,
    pub(crate) max_seconds: f64,
    pub(crate) jitter: f64,
}

/// One attempt that has ended.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttemptView {
    pub(crate) attempt: u16,
    pub(crate) outcome: AttemptOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worker_id: Option<WorkerName>,
    pub(crate) started_at: Timestamp,
    pub(crate) ended_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl From<JobSummary> for SummaryView {
    fn from(job: JobSummary) -> Self {
        Self {
            job_id: job.id,
            status: job.status(),
            job_type: job.job_type,
            state: job.state,
            queue: job.queue,
            tenant: job.tenant,
            priority: job.priority,
            attempts_used: job.attempts,
            max_attempts: job.max_attempts,
            created_at: job.created_at,
            updated_at: job.updated_at,
            eligible_at: job.eligible_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            worker_id: job.worker,
            cancel_requested: job.cancel_requested,
            progress: job.progress.map(ProgressView::from),
            reason: job.reason,
            correlation_id: job.correlation_id,
            idempotency_key: job.idempotency_key,
            tags: job.tags,
        }
    }
}

impl From<Job> for JobView {
    fn from(job: Job) -> Self {
        Self {
            payload: job.payload,
            result: job.result,
            checkpoint: job.checkpoint,
            attempts: job.attempt_log.into_iter().map(AttemptView::from).collect(),
            timeout_seconds: job.timeout.map(|timeout| timeout.as_secs_f64()),
            lease_seconds: job.lease.as_secs_f64(),
            lease_expires_at: job.lease_expires_at,
            leases: job.leases,
            leases_lost: job.losses,
            retry: RetryView::from(job.retry),
            depends_on: job.depends_on,
            on_dependency_failure: job.on_dependency_failure,
            expires_at: job.expires_at,
            concurrency_key: job.concurrency_key,
            rate_limit_key: job.rate_limit_key,
            resources: amounts(&job.resources),
            traceparent: job.traceparent,
            note: None,
            summary: SummaryView {
                job_id: job.id,
                job_type: job.job_type,
                status: job.state.status(),
                state: job.state,
                queue: job.queue,
                tenant: job.tenant,
                priority: job.priority,
                attempts_used: job.attempts,
                max_attempts: job.max_attempts,
                created_at: job.created_at,
                updated_at: job.updated_at,
                eligible_at: job.eligible_at,
                started_at: job.started_at,
                finished_at: job.finished_at,
                worker_id: job.worker,
                cancel_requested: job.cancel_requested,
                progress: job.progress.map(ProgressView::from),
                reason: job.reason,
                correlation_id: job.correlation_id,
                idempotency_key: job.idempotency_key,
                tags: job.tags,
            },
        }
    }
}

impl From<RetryPolicy> for RetryView {
    fn from(retry: RetryPolicy) -> Self {
        Self {
            base_seconds: retry.base.as_secs_f64(),
            multiplier: retry.multiplier,
            max_seconds: retry.max.as_secs_f64(),
            jitter: retry.jitter,
        }
    }
}

impl From<Progress> for ProgressView {
    fn from(progress: Progress) -> Self {
        Self { percent: progress.percent, message: progress.message }
    }
}

impl From<AttemptRecord> for AttemptView {
    fn from(attempt: AttemptRecord) -> Self {
        Self {
            attempt: attempt.attempt,
            outcome: attempt.outcome,
            worker_id: attempt.worker,
            started_at: attempt.started_at,
            ended_at: attempt.ended_at,
            error: attempt.error,
        }
    }
}

impl AttemptView {
    /// How long it took.
    pub(crate) fn took(&self) -> Duration {
        crate::times::since(self.started_at, self.ended_at)
    }
}

/// Resources by their names.
pub(crate) fn amounts(resources: &Resources) -> BTreeMap<LimitKey, f64> {
    // Kept in thousandths.
    resources.iter().map(|(name, amount)| (name.clone(), amount as f64 / 1_000.0)).collect()
}

/// JSON as it was given, not as it would be written anew.
pub(crate) fn as_given<S: Serializer>(json: &Json, serializer: S) -> Result<S::Ok, S::Error> {
    let raw: &RawValue = serde_json::from_str(json.as_str()).map_err(S::Error::custom)?;
    raw.serialize(serializer)
}

fn as_given_or_null<S: Serializer>(json: &Option<Json>, serializer: S) -> Result<S::Ok, S::Error> {
    match json {
        Some(json) => as_given(json, serializer),
        None => serializer.serialize_none(),
    }
}
