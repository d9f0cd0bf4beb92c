//! A stored job.

use std::time::Duration;

use crate::{
    AttemptRecord, IdempotencyKey, JobId, JobState, JobType, Json, LimitKey, OnDependencyFailure, Priority, Queue,
    Resources, RetryPolicy, Tag, Tenant, Timestamp, WorkerName,
};

/// A job with everything that a store keeps about it, for operators and tests. Clients see less.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The id.
    pub id: JobId,
    /// The state.
    pub state: JobState,
    /// The job type.
    pub job_type: JobType,
    /// The queue.
    pub queue: Queue,
    /// The tenant.
    pub tenant: Tenant,
    /// The priority; higher is claimed first.
    pub priority: Priority,
    /// Attempts used.
    pub attempts: u16,
    /// The attempt budget.
    pub max_attempts: u16,
    /// Leases lost in a row by workers that had started.
    pub losses: u16,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
    /// When it became, or becomes, eligible to run.
    pub eligible_at: Timestamp,
    /// When its latest attempt started.
    pub started_at: Option<Timestamp>,
    /// When it finished.
    pub finished_at: Option<Timestamp>,
    /// When it is cancelled if it has not started.
    pub expires_at: Option<Timestamp>,
    /// When its lease expires unless the worker extends it.
    pub lease_expires_at: Option<Timestamp>,
    /// The worker that owns it or ran it last.
    pub worker: Option<WorkerName>,
    /// The number of leases so far.
    pub leases: i32,
    /// Whether its owner has been asked to stop.
    pub cancel_requested: bool,
    /// The time limit of one attempt.
    pub timeout: Option<Duration>,
    /// The lease duration: how long a worker keeps the job without a heartbeat.
    pub lease: Duration,
    /// The back-off between attempts.
    pub retry: RetryPolicy,
    /// The payload.
    pub payload: Json,
    /// The result of the completed attempt.
    pub result: Option<Json>,
    /// The progress that its worker last reported.
    pub progress: Option<Progress>,
    /// The checkpoint that its next attempt receives.
    pub checkpoint: Option<Json>,
    /// Why it was cancelled or died, such as `expired` or `dependency_failed`.
    pub reason: Option<String>,
    /// The latest [`AttemptRecord::KEPT`] ended attempts, oldest first. Empty for a job that completed in its first.
    pub attempt_log: Vec<AttemptRecord>,
    /// Its parents: the jobs that it waits or waited for.
    pub depends_on: Vec<JobId>,
    /// What happens when a parent dies or is cancelled.
    pub on_dependency_failure: OnDependencyFailure,
    /// The client's idempotency key.
    pub idempotency_key: Option<IdempotencyKey>,
    /// The key of a concurrency limit. Not enforced yet.
    pub concurrency_key: Option<LimitKey>,
    /// The key of a rate limit. Not enforced yet.
    pub rate_limit_key: Option<LimitKey>,
    /// The resources that it needs of its worker. Not enforced yet.
    pub resources: Resources,
    /// Tags to search by.
    pub tags: Vec<Tag>,
    /// The client's correlation id.
    pub correlation_id: Option<String>,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
}

/// The progress of a running job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// The percentage done, 0 to 100.
    pub percent: Option<f64>,
    /// A message for people.
    pub message: Option<String>,
}
