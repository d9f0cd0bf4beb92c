//! What has to be known to explain where a job stands, and for which jobs.

use orchestrix_core::{Job, JobId, JobState, JobType, Queue, Timestamp};
use orchestrix_store::{Directive, Queues, WorkerStatus};

/// What is known. What a job's state does not ask for may be left as it is by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The time of the question, by the clock of the store.
    pub now: Timestamp,
    /// Where the jobs stand that it depends on. Those that were forgotten are left out: they were over.
    pub parents: Vec<(JobId, JobState)>,
    /// Whether claims from its queue are stopped.
    pub paused: bool,
    /// How close workers come to taking it; `None` if that is not known.
    pub reach: Option<Reach>,
    /// Whether anybody leads.
    pub leader: bool,
}

impl Facts {
    /// Nothing is known, and nothing stands in the way.
    pub const fn none(now: Timestamp) -> Self {
        Self { now, parents: Vec::new(), paused: false, reach: None, leader: true }
    }

    /// Parents that are not over.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = &(JobId, JobState)> {
        self.parents.iter().filter(|(_, state)| !state.is_terminal())
    }

    /// Parents that did not do their work.
    pub(super) fn failed(&self) -> impl Iterator<Item = &(JobId, JobState)> {
        self.parents.iter().filter(|(_, state)| matches!(state, JobState::Dead | JobState::Cancelled))
    }
}

/// How close any worker comes to taking a job: the more, the closer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// No worker lives.
    Nobody,
    /// Some live, and none takes jobs from its queue.
    OtherQueues,
    /// Some take jobs from its queue, and none of them knows its type.
    OtherTypes,
    /// Some would take it, and all of them were told to take nothing new.
    Draining,
    /// Some take it, and none said that it has a free slot.
    Busy,
    /// One has a free slot.
    Free,
}

impl Reach {
    /// How close this worker comes.
    pub fn of(worker: &WorkerStatus, queue: &Queue, job_type: &JobType) -> Self {
        if !worker.is_live() {
            return Self::Nobody;
        }
        let serves = match &worker.info.queues {
            Queues::All => true,
            Queues::Named(names) => names.contains(queue),
        };
        if !serves {
            return Self::OtherQueues;
        }
        if worker.info.job_types.as_ref().is_some_and(|types| !types.contains(job_type)) {
            return Self::OtherTypes;
        }
        match worker.directive {
            Directive::Drain | Directive::Stop => Self::Draining,
            Directive::Run if worker.free_slots == 0 => Self::Busy,
            Directive::Run => Self::Free,
        }
    }
}

/// Whether it matters where the job's parents stand.
pub fn asks_for_parents(job: &Job) -> bool {
    let state = matches!(job.state, JobState::Created | JobState::Blocked);
    (state || job.reason.as_deref() == Some("dependency_failed")) && !job.depends_on.is_empty()
}

/// Whether it matters who works, and whether the queue is paused.
pub fn asks_for_workers(job: &Job) -> bool {
    !job.state.is_terminal() && !job.state.is_leased()
}

/// Whether it matters that somebody leads: a leader promotes, cancels what is late, and takes back what was lost.
pub fn asks_for_leader(job: &Job, now: Timestamp) -> bool {
    let moved_by_a_leader = matches!(job.state, JobState::Blocked | JobState::Scheduled | JobState::Retrying);
    moved_by_a_leader || is_expired(job, now) || is_lost(job, now)
}

/// Whether the job did not start in time, and is not yet cancelled for it.
pub(super) fn is_expired(job: &Job, now: Timestamp) -> bool {
    let waits = matches!(job.state, JobState::Created | JobState::Blocked | JobState::Scheduled | JobState::Pending);
    waits && job.started_at.is_none() && job.expires_at.is_some_and(|at| at <= now)
}

/// Whether the job's lease is over, and not yet taken back.
pub(super) fn is_lost(job: &Job, now: Timestamp) -> bool {
    job.state.is_leased() && job.lease_expires_at.is_some_and(|at| at <= now)
}
