//! The facts that an explanation needs, and which jobs need them.

use orchestrix_core::{Job, JobId, JobState, JobType, Queue, Timestamp, Weight};
use orchestrix_store::{Directive, Queues, WorkerStatus};

/// The facts about a job. Facts that the job's state does not need may keep their defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The current time, by the clock of the store.
    pub now: Timestamp,
    /// The states of the dependencies. Finished dependencies that were deleted are missing.
    pub dependencies: Vec<(JobId, JobState)>,
    /// Whether the queue is paused.
    pub paused: bool,
    /// The availability of workers. `None` if it is unknown.
    pub availability: Option<WorkerAvailability>,
    /// Whether there is a leader.
    pub leader: bool,
    /// The weight of the job's tenant.
    pub weight: Weight,
}

impl Facts {
    /// No known obstacles.
    pub fn none(now: Timestamp) -> Self {
        Self {
            now,
            dependencies: Vec::new(),
            paused: false,
            availability: None,
            leader: true,
            weight: Weight::default(),
        }
    }

    /// The dependencies that have not finished.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = &(JobId, JobState)> {
        self.dependencies.iter().filter(|(_, state)| !state.is_terminal())
    }

    /// The dependencies that finished without completing.
    pub(super) fn failed(&self) -> impl Iterator<Item = &(JobId, JobState)> {
        self.dependencies.iter().filter(|(_, state)| matches!(state, JobState::Dead | JobState::Cancelled))
    }
}

/// How available workers are for a job, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerAvailability {
    /// No worker is live.
    NoWorker,
    /// No live worker serves the queue.
    NoWorkerForQueue,
    /// No live worker of the queue handles the job type.
    NoWorkerForType,
    /// All workers that serve the job are draining.
    Draining,
    /// All workers that serve the job are busy.
    Busy,
    /// A worker has a free slot.
    Available,
}

impl WorkerAvailability {
    /// The availability of one worker.
    pub fn of(worker: &WorkerStatus, queue: &Queue, job_type: &JobType) -> Self {
        if !worker.is_live() {
            return Self::NoWorker;
        }
        let serves = match &worker.info.queues {
            Queues::All => true,
            Queues::Named(names) => names.contains(queue),
        };
        if !serves {
            return Self::NoWorkerForQueue;
        }
        if worker.info.job_types.as_ref().is_some_and(|types| !types.contains(job_type)) {
            return Self::NoWorkerForType;
        }
        match worker.directive {
            Directive::Drain | Directive::Stop => Self::Draining,
            Directive::Run if worker.free_slots == 0 => Self::Busy,
            Directive::Run => Self::Available,
        }
    }
}

/// Whether the explanation needs the states of the dependencies.
pub fn needs_dependencies(job: &Job) -> bool {
    let may_wait = matches!(job.state, JobState::Created | JobState::Blocked);
    (may_wait || job.reason.as_deref() == Some("dependency_failed")) && !job.depends_on.is_empty()
}

/// Whether the explanation needs the workers and the paused queues.
pub fn needs_workers(job: &Job) -> bool {
    !job.state.is_terminal() && !job.state.is_leased()
}

/// Whether the explanation needs the leader, which promotes jobs, cancels expired ones and reaps lost leases.
pub fn needs_leader(job: &Job, now: Timestamp) -> bool {
    let moved_by_leader = matches!(job.state, JobState::Blocked | JobState::Scheduled | JobState::Retrying);
    moved_by_leader || is_expired(job, now) || is_lease_expired(job, now)
}

/// Whether the explanation needs the weight of the job's tenant: only a claimable job waits for the turn of its tenant.
pub fn needs_weight(job: &Job) -> bool {
    job.state == JobState::Pending
}

/// Whether the job has expired and is not cancelled yet.
pub(super) fn is_expired(job: &Job, now: Timestamp) -> bool {
    let waiting = matches!(job.state, JobState::Created | JobState::Blocked | JobState::Scheduled | JobState::Pending);
    waiting && job.started_at.is_none() && job.expires_at.is_some_and(|at| at <= now)
}

/// Whether the job's lease has expired and is not reaped yet.
pub(super) fn is_lease_expired(job: &Job, now: Timestamp) -> bool {
    job.state.is_leased() && job.lease_expires_at.is_some_and(|at| at <= now)
}
