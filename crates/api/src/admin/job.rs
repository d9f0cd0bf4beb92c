//! Summaries and details of jobs.

use std::collections::BTreeMap;

use orchestrix_core::{
    IdempotencyKey, Job, JobId, JobState, JobStatus, JobType, LimitKey, OnDependencyFailure, Priority, Queue, Tag,
    Tenant, Timestamp, WorkerName,
};
use orchestrix_store::{JobSummary, LogEntry, Page};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    attempt::{AttemptView, LogLineView, RetryPolicyView},
    timeline::{self, TimelineEvent},
};
use crate::{ListResponse, job::ProgressView, seconds::seconds, worker::raw};

/// A summary of a job, as in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobSummaryView {
    /// The job's id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// The type of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub job_type: JobType,
    /// The status that clients see.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::JobStatus))]
    pub status: JobStatus,
    /// The state.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::JobState))]
    pub state: JobState,
    /// The queue.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub queue: Queue,
    /// The tenant.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub tenant: Tenant,
    /// The priority. Workers claim higher priorities first.
    #[cfg_attr(feature = "openapi", schema(value_type = i16))]
    pub priority: Priority,
    /// The number of attempts used.
    pub attempts_used: u16,
    /// The maximum number of attempts.
    pub max_attempts: u16,
    /// When the job was enqueued.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When the job last changed state.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
    /// When the job became or becomes eligible to run.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub eligible_at: Timestamp,
    /// When the latest attempt started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub started_at: Option<Timestamp>,
    /// When the job finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    /// The worker that runs the job or ran it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub worker_id: Option<WorkerName>,
    /// Whether a cancellation was requested while the job runs.
    pub cancel_requested: bool,
    /// The progress last reported by the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressView>,
    /// The reason why the job was cancelled or died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The caller's correlation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The idempotency key of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub idempotency_key: Option<IdempotencyKey>,
    /// The tags.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub tags: Vec<Tag>,
}

/// All details of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobDetails {
    /// The summary.
    #[serde(flatten)]
    pub summary: JobSummaryView,
    /// The payload, byte for byte as the client sent it.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Box<RawValue>,
    /// The result, byte for byte as the worker reported it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>, required))]
    pub result: Option<Box<RawValue>>,
    /// The checkpoint for the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub checkpoint: Option<Box<RawValue>>,
    /// The latest attempts, oldest first: up to 100 that have ended, and the running one.
    pub attempts: Vec<AttemptView>,
    /// The number of earlier attempts that are no longer stored.
    pub earlier_attempts: u32,
    /// The history of the job in chronological order, as far as it can be derived from the stored attempts.
    pub transitions: Vec<TimelineEvent>,
    /// The first log lines, oldest first. `GET /admin/jobs/{jobId}/logs` continues from the cursor.
    pub logs: ListResponse<LogLineView>,
    /// The time limit of one attempt, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// The lease duration, in seconds.
    pub lease_seconds: f64,
    /// When the current lease expires unless it is extended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub lease_expires_at: Option<Timestamp>,
    /// The number of times the job was leased.
    pub leases: i32,
    /// The number of leases lost in a row.
    pub leases_lost: u16,
    /// The backoff between attempts.
    pub retry: RetryPolicyView,
    /// The dependencies.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub depends_on: Vec<JobId>,
    /// What happens to the job when a dependency fails.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub on_dependency_failure: OnDependencyFailure,
    /// The job is cancelled if it has not started by this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Timestamp>,
    /// The key of a concurrency limit. Stored with the job; not enforced yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub concurrency_key: Option<LimitKey>,
    /// The key of a rate limit. Stored with the job; not enforced yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub rate_limit_key: Option<LimitKey>,
    /// The resources the job needs. Not enforced yet.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, f64>))]
    pub resources: BTreeMap<LimitKey, f64>,
    /// The W3C trace context of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl From<JobSummary> for JobSummaryView {
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

impl JobDetails {
    /// The number of log lines in the details.
    pub const LOG_LINES: usize = 100;

    /// Combines a job with the first page of its log.
    pub fn new(job: Job, logs: Page<LogEntry, i64>) -> Self {
        Self {
            summary: JobSummaryView::from(JobSummary::from(&job)),
            attempts: timeline::attempts(&job),
            earlier_attempts: timeline::earlier_attempts(&job),
            transitions: timeline::timeline(&job),
            logs: ListResponse::from_page(logs, LogLineView::from),
            payload: raw(&job.payload),
            result: job.result.as_ref().map(raw),
            checkpoint: job.checkpoint.as_ref().map(raw),
            timeout_seconds: job.timeout.map(seconds),
            lease_seconds: seconds(job.lease),
            lease_expires_at: job.lease_expires_at,
            leases: job.leases,
            leases_lost: job.losses,
            retry: RetryPolicyView::from(job.retry),
            depends_on: job.depends_on,
            on_dependency_failure: job.on_dependency_failure,
            expires_at: job.expires_at,
            concurrency_key: job.concurrency_key,
            rate_limit_key: job.rate_limit_key,
            // Amounts are stored in thousandths.
            resources: job.resources.iter().map(|(name, amount)| (name.clone(), amount as f64 / 1_000.0)).collect(),
            traceparent: job.traceparent,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn job_details_round_trip_byte_for_byte() {
        let text = r#"{"jobId":"0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70","jobType":"t","status":"PENDING","state":"retrying","queue":"q","tenant":"default","priority":-7,"attemptsUsed":1,"maxAttempts":3,"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:01Z","eligibleAt":"2026-01-01T00:00:02Z","cancelRequested":false,"progress":{"percent":1.5},"tags":["x"],"payload":{"b":1.0,  "a":[1e2]},"result":null,"attempts":[{"attempt":1,"outcome":"timed_out","ledTo":"retrying","startedAt":"2026-01-01T00:00:00Z","endedAt":"2026-01-01T00:00:01.5Z","error":"e"},{"attempt":2,"startedAt":"2026-01-01T00:00:03Z"}],"earlierAttempts":7,"transitions":[{"at":"2026-01-01T00:00:00Z","event":"recorded"},{"at":"2026-01-01T00:00:01.5Z","event":"ended","state":"retrying","attempt":1,"outcome":"timed_out","workerId":"w","reason":"r"}],"logs":{"items":[{"seq":1,"at":"2026-01-01T00:00:00Z","level":"info","attempt":1,"message":"m"}],"nextCursor":"1"},"leaseSeconds":30.0,"leases":1,"leasesLost":0,"retry":{"baseSeconds":1.0,"multiplier":2.0,"maxSeconds":3600.0,"jitter":0.1},"dependsOn":[],"onDependencyFailure":"hold","resources":{"cpu":0.5}}"#;
        let job: JobDetails = serde_json::from_str(text).unwrap();
        assert_eq!(job.attempts[0].duration(), Some(Duration::from_millis(1500)));
        assert_eq!(job.attempts[1].duration(), None, "the second attempt still runs");
        assert_eq!(serde_json::to_string(&job).unwrap(), text);
    }
}
