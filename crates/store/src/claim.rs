//! Claims: what a worker requests and receives.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use orchestrix_core::{
    FieldError, Invalid, JobId, JobType, Json, LeaseToken, Priority, Queue, Tenant, Timestamp, WorkerName,
};

/// Which queues a worker serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Queues {
    /// Every queue.
    All,
    /// Only these.
    Named(Vec<Queue>),
}

impl Queues {
    /// Whether the worker serves `queue`.
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
    /// The worker.
    pub worker: WorkerName,
    /// The queues. Jobs of all of them are claimed in one order.
    pub queues: Queues,
    /// The job types; `None` for any.
    pub job_types: Option<Vec<JobType>>,
    /// The most jobs to claim.
    pub limit: usize,
}

impl ClaimRequest {
    /// The most jobs per claim.
    pub const MAX_LIMIT: usize = 10_000;
    /// The most queues or types per claim.
    pub const MAX_NAMES: usize = 1_000;

    /// Up to `limit` jobs of any type from any queue.
    pub fn any(worker: WorkerName, limit: usize) -> Self {
        Self { worker, queues: Queues::All, job_types: None, limit }
    }

    /// A hash of the names that the request asks for, in any order. Claims of one scope share the turns of tenants.
    pub fn scope(&self) -> u64 {
        let queues: Option<BTreeSet<&Queue>> = match &self.queues {
            Queues::All => None,
            Queues::Named(names) => Some(names.iter().collect()),
        };
        let job_types: Option<BTreeSet<&JobType>> = self.job_types.as_ref().map(|types| types.iter().collect());
        let mut hasher = DefaultHasher::new();
        (queues, job_types).hash(&mut hasher);
        hasher.finish()
    }

    /// Validates the limits.
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

/// A job that the worker now owns.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedJob {
    /// Proof of ownership, for every call about the job.
    pub token: LeaseToken,
    /// The job type.
    pub job_type: JobType,
    /// The queue.
    pub queue: Queue,
    /// The tenant.
    pub tenant: Tenant,
    /// The priority.
    pub priority: Priority,
    /// The payload.
    pub payload: Json,
    /// The number of this attempt, from 1.
    pub attempt: u16,
    /// The attempt budget.
    pub max_attempts: u16,
    /// When it became eligible.
    pub eligible_at: Timestamp,
    /// When the lease expires unless it is extended, by the store's clock.
    pub lease_expires_at: Timestamp,
    /// The lease duration, for the worker's own clock.
    pub lease: Duration,
    /// The time limit of the attempt.
    pub timeout: Option<Duration>,
    /// The checkpoint of the previous attempt.
    pub checkpoint: Option<Json>,
    /// The client's correlation id.
    pub correlation_id: Option<String>,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
    /// The results of its parents, without those that have none.
    pub dependency_results: Vec<(JobId, Json)>,
}

impl ClaimedJob {
    /// The job's id.
    pub const fn id(&self) -> JobId {
        self.token.job
    }
}

/// The most leases per heartbeat.
pub const MAX_TOKENS: usize = 10_000;

/// Validates the number of tokens of a heartbeat.
pub fn check_tokens(tokens: &[LeaseToken]) -> Result<(), FieldError> {
    if tokens.len() <= MAX_TOKENS {
        return Ok(());
    }
    Err(FieldError::new("leaseTokens", format!("may hold at most {MAX_TOKENS}, holds {}", tokens.len())))
}

/// The status of one lease after a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseStatus {
    /// Extended until then.
    Held(Timestamp),
    /// Extended until then, and the worker should stop: the job has a cancel request.
    Cancel(Timestamp),
    /// Not extended, because another transaction has locked the row. It expires then; retry soon.
    Locked(Timestamp),
    /// Lost: the worker no longer owns the job and should stop.
    Lost,
}
