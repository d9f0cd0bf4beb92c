//! A job as it stands.

use std::time::Duration;

use crate::{
    AttemptRecord, IdempotencyKey, JobId, JobState, JobType, Json, LimitKey, OnDependencyFailure, Priority, Queue,
    Resources, RetryPolicy, Tag, Tenant, Timestamp, WorkerName,
};

/// Everything a store knows of one job, for operators and tests. Clients see far less.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its identity.
    pub id: JobId,
    /// Where it stands.
    pub state: JobState,
    /// What kind of work it is.
    pub job_type: JobType,
    /// Where it waits.
    pub queue: Queue,
    /// Whose it is.
    pub tenant: Tenant,
    /// How urgent it is.
    pub priority: Priority,
    /// Attempts used up.
    pub attempts: u16,
    /// The attempt budget.
    pub max_attempts: u16,
    /// Leases lost in a row.
    pub losses: u16,
    /// When it was recorded.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
    /// When it became, or will become, eligible.
    pub eligible_at: Timestamp,
    /// When its latest attempt began.
    pub started_at: Option<Timestamp>,
    /// When it was over.
    pub finished_at: Option<Timestamp>,
    /// Cancelled if it has not started by then.
    pub expires_at: Option<Timestamp>,
    /// Until when its owner may be silent.
    pub lease_expires_at: Option<Timestamp>,
    /// Who owns it, or ran it last.
    pub worker: Option<WorkerName>,
    /// Leases it has had.
    pub leases: i32,
    /// Whether its owner was asked to stop.
    pub cancel_requested: bool,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// How long a silent worker keeps it.
    pub lease: Duration,
    /// How long to wait between attempts.
    pub retry: RetryPolicy,
    /// What it was handed.
    pub payload: Json,
    /// What it left behind.
    pub result: Option<Json>,
    /// How far it has come, as its worker last said.
    pub progress: Option<Progress>,
    /// What its worker wants back in the next attempt.
    pub checkpoint: Option<Json>,
    /// Why it was cancelled or died, in a word such as `expired` or `dependency_failed`.
    pub reason: Option<String>,
    /// Attempts that ended in anything but a first success, oldest first: the latest [`AttemptRecord::KEPT`].
    pub attempt_log: Vec<AttemptRecord>,
    /// Jobs it waits or waited for.
    pub depends_on: Vec<JobId>,
    /// What to do when one of those failed.
    pub on_dependency_failure: OnDependencyFailure,
    /// The client's name for the request.
    pub idempotency_key: Option<IdempotencyKey>,
    /// Shares a concurrency limit.
    pub concurrency_key: Option<LimitKey>,
    /// Shares a rate limit.
    pub rate_limit_key: Option<LimitKey>,
    /// What it needs of its worker.
    pub resources: Resources,
    /// Words to find it by.
    pub tags: Vec<Tag>,
    /// The caller's id for the larger whole.
    pub correlation_id: Option<String>,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
}

/// How far a running job has come.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// 0 to 100.
    pub percent: Option<f64>,
    /// What it is doing.
    pub message: Option<String>,
}
