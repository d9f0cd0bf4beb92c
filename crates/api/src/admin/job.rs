//! Jobs with all that is known of them.

use std::collections::BTreeMap;

use orchestrix_core::{
    IdempotencyKey, Job, JobId, JobState, JobStatus, JobType, Json, LimitKey, OnDependencyFailure, Priority, Progress,
    Queue, Tag, Tenant, Timestamp, WorkerName,
};
use orchestrix_store::{JobSummary, LogEntry, Page};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[cfg(feature = "openapi")]
use super::standing::StateWord;
use super::{
    attempt::{AttemptView, LineView, RetryView},
    timeline::{self, Transition},
};
use crate::{Listed, job::ProgressView, seconds::seconds};

/// A job in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobItem {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// What kind of work it is.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub job_type: JobType,
    /// Where it stands, as clients see it.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::job::Status))]
    pub status: JobStatus,
    /// Where it stands.
    #[cfg_attr(feature = "openapi", schema(value_type = StateWord))]
    pub state: JobState,
    /// Where it waits.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub queue: Queue,
    /// Whose it is.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub tenant: Tenant,
    /// How urgent it is; higher first.
    #[cfg_attr(feature = "openapi", schema(value_type = i16))]
    pub priority: Priority,
    /// Attempts that are used up.
    pub attempts_used: u16,
    /// How many there may be.
    pub max_attempts: u16,
    /// When it was recorded.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When its state last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
    /// When it became, or will become, eligible.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub eligible_at: Timestamp,
    /// When its latest attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub started_at: Option<Timestamp>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    /// Who owns it, or ran it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub worker_id: Option<WorkerName>,
    /// Whether its owner was asked to stop.
    pub cancel_requested: bool,
    /// How far it has come, as its worker last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressView>,
    /// Why it was cancelled or died, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The caller's id for the larger whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The client's name for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub idempotency_key: Option<IdempotencyKey>,
    /// Words to find it by.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub tags: Vec<Tag>,
}

/// All of one job.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobDetails {
    /// What a list shows of it.
    #[serde(flatten)]
    pub item: JobItem,
    /// What it was handed, exactly as it was given.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Box<RawValue>,
    /// What it left behind, exactly as its worker gave it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>, required))]
    pub result: Option<Box<RawValue>>,
    /// What its worker wants back in the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub checkpoint: Option<Box<RawValue>>,
    /// Its latest attempts, the oldest first: a hundred that have ended, and the one under way.
    pub attempts: Vec<AttemptView>,
    /// How many came before these and are not kept.
    pub earlier_attempts: u32,
    /// What it has gone through, in the order in which it happened, as far as its row and these attempts tell.
    pub transitions: Vec<Transition>,
    /// The first lines of its log, the oldest first. `GET /admin/jobs/{jobId}/logs` goes on from the cursor.
    pub logs: Listed<LineView>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// How long a silent worker keeps it.
    pub lease_seconds: f64,
    /// Until when its owner may be silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub lease_expires_at: Option<Timestamp>,
    /// Leases it has had.
    pub leases: i32,
    /// Leases lost in a row.
    pub leases_lost: u16,
    /// How long it waits between attempts.
    pub retry: RetryView,
    /// Jobs it waits or waited for.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub depends_on: Vec<JobId>,
    /// What becomes of it when one of those failed.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub on_dependency_failure: OnDependencyFailure,
    /// Cancelled if it has not started by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Timestamp>,
    /// Shares a concurrency limit with every job of this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub concurrency_key: Option<LimitKey>,
    /// Shares a rate limit with every job of this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub rate_limit_key: Option<LimitKey>,
    /// What it needs of its worker.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, f64>))]
    pub resources: BTreeMap<LimitKey, f64>,
    /// W3C trace context of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl From<JobSummary> for JobItem {
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
    /// How many lines of its log are told with a job.
    pub const LINES: usize = 100;

    /// All of a job, with the first lines of its log.
    pub fn of(job: Job, logs: Page<LogEntry, i64>) -> Self {
        Self {
            attempts: timeline::attempts(&job),
            earlier_attempts: timeline::earlier_attempts(&job),
            transitions: timeline::transitions(&job),
            logs: Listed::of(logs, LineView::from),
            payload: raw(&job.payload),
            result: job.result.as_ref().map(raw),
            checkpoint: job.checkpoint.as_ref().map(raw),
            timeout_seconds: job.timeout.map(seconds),
            lease_seconds: seconds(job.lease),
            lease_expires_at: job.lease_expires_at,
            leases: job.leases,
            leases_lost: job.losses,
            retry: RetryView::from(job.retry),
            depends_on: job.depends_on,
            on_dependency_failure: job.on_dependency_failure,
            expires_at: job.expires_at,
            concurrency_key: job.concurrency_key,
            rate_limit_key: job.rate_limit_key,
            // Kept in thousandths.
            resources: job.resources.iter().map(|(name, amount)| (name.clone(), amount as f64 / 1_000.0)).collect(),
            traceparent: job.traceparent,
            item: JobItem {
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

// Checked when it was recorded, so it is JSON.
fn raw(json: &Json) -> Box<RawValue> {
    RawValue::from_string(json.as_str().to_owned()).unwrap_or_default()
}

impl From<Progress> for ProgressView {
    fn from(progress: Progress) -> Self {
        Self { percent: progress.percent, message: progress.message }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn all_of_a_job_is_written_and_read_alike_and_its_payload_is_as_it_was_given() {
        let text = r#"{"jobId":"0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70","jobType":"t","status":"PENDING","state":"retrying","queue":"q","tenant":"default","priority":-7,"attemptsUsed":1,"maxAttempts":3,"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:01Z","eligibleAt":"2026-01-01T00:00:02Z","cancelRequested":false,"progress":{"percent":1.5},"tags":["x"],"payload":{"b":1.0,  "a":[1e2]},"result":null,"attempts":[{"attempt":1,"outcome":"timed_out","ledTo":"retrying","startedAt":"2026-01-01T00:00:00Z","endedAt":"2026-01-01T00:00:01.5Z","error":"e"},{"attempt":2,"startedAt":"2026-01-01T00:00:03Z"}],"earlierAttempts":7,"transitions":[{"at":"2026-01-01T00:00:00Z","event":"recorded"},{"at":"2026-01-01T00:00:01.5Z","event":"ended","state":"retrying","attempt":1,"outcome":"timed_out","workerId":"w","reason":"r"}],"logs":{"items":[{"seq":1,"at":"2026-01-01T00:00:00Z","level":"info","attempt":1,"message":"m"}],"nextCursor":"1"},"leaseSeconds":30.0,"leases":1,"leasesLost":0,"retry":{"baseSeconds":1.0,"multiplier":2.0,"maxSeconds":3600.0,"jitter":0.1},"dependsOn":[],"onDependencyFailure":"hold","resources":{"cpu":0.5}}"#;
        let job: JobDetails = serde_json::from_str(text).unwrap();
        assert_eq!(job.attempts[0].took(), Some(Duration::from_millis(1500)));
        assert_eq!(job.attempts[1].took(), None, "it is under way");
        assert_eq!(serde_json::to_string(&job).unwrap(), text);
    }
}
