//! What a worker asks for and what it is given.

use std::time::Duration;

use orchestrix_core::{
    FieldError, Invalid, JobId, JobType, Json, LeaseToken, Priority, Queue, Tenant, Timestamp, WorkerName,
};

/// Which queues a worker serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Queues {
    /// Every queue.
    All,
    /// Just these.
    Named(Vec<Queue>),
}

impl Queues {
    /// Whether `queue` is served.
    pub fn contains(&self, queue: &Queue) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(queue),
        }
    }
}

/// A worker's request for jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Who asks.
    pub worker: WorkerName,
    /// From which queues. The order is one over all of them.
    pub queues: Queues,
    /// Only these types; `None` takes any.
    pub job_types: Option<Vec<JobType>>,
    /// How many at most.
    pub limit: usize,
}

impl ClaimRequest {
    /// The most jobs one claim may take.
    pub const MAX_LIMIT: usize = 10_000;
    /// The most queues or types one claim may name.
    pub const MAX_NAMES: usize = 1_000;

    /// Up to `limit` jobs of any type from any queue.
    pub fn any(worker: WorkerName, limit: usize) -> Self {
        Self { worker, queues: Queues::All, job_types: None, limit }
    }

    /// Checks the limits.
    pub fn validate(&self) -> Result<(), Invalid> {
        let mut errors = Vec::new();
        if !(1..=Self::MAX_LIMIT).contains(&self.limit) {
            errors.push(FieldError::new("max", format!("must be from 1 to {}, not {}", Self::MAX_LIMIT, self.limit)));
        }
        if let Queues::Named(names) = &self.queues
            && names.len() > Self::MAX_NAMES
        {
            errors.push(FieldError::new("queues", format!("may name at most {}", Self::MAX_NAMES)));
        }
        if self.job_types.as_ref().is_some_and(|types| types.len() > Self::MAX_NAMES) {
            errors.push(FieldError::new("jobTypes", format!("may name at most {}", Self::MAX_NAMES)));
        }
        Invalid::check(errors)
    }
}

/// A job that a worker now owns.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedJob {
    /// Proof of ownership, for every call about the job.
    pub token: LeaseToken,
    /// What kind of work it is.
    pub job_type: JobType,
    /// Where it waited.
    pub queue: Queue,
    /// Whose it is.
    pub tenant: Tenant,
    /// How urgent it is.
    pub priority: Priority,
    /// What to work on.
    pub payload: Json,
    /// Which attempt this is, from 1.
    pub attempt: u16,
    /// The attempt budget.
    pub max_attempts: u16,
    /// When it became eligible.
    pub eligible_at: Timestamp,
    /// Until when the worker may be silent, by the store's clock.
    pub lease_expires_at: Timestamp,
    /// How long that is from the claim, for the worker's own clock.
    pub lease: Duration,
    /// How long the attempt may take.
    pub timeout: Option<Duration>,
    /// What the previous attempt left for this one.
    pub checkpoint: Option<Json>,
    /// The caller's id for the larger whole.
    pub correlation_id: Option<String>,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
    /// What the jobs it waited for left behind; those without a result are not listed.
    pub dependency_results: Vec<(JobId, Json)>,
}

impl ClaimedJob {
    /// The job's id.
    pub const fn id(&self) -> JobId {
        self.token.job
    }
}

/// The most leases one heartbeat may extend.
pub const MAX_TOKENS: usize = 10_000;

/// Checks the size of a heartbeat.
pub fn check_tokens(tokens: &[LeaseToken]) -> Result<(), FieldError> {
    if tokens.len() <= MAX_TOKENS {
        return Ok(());
    }
    Err(FieldError::new("leaseTokens", format!("may hold at most {MAX_TOKENS}, holds {}", tokens.len())))
}

/// What a heartbeat learns of one lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseStatus {
    /// Extended until then.
    Held(Timestamp),
    /// Extended until then, and somebody wants the job cancelled.
    Cancel(Timestamp),
    /// Not extended this time, because somebody's transaction has the row; it stands until then. Try again soon.
    Locked(Timestamp),
    /// Not the owner any more: stop.
    Lost,
}
