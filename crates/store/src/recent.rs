//! What happened lately, for whoever follows many jobs without knowing their ids.

use orchestrix_core::{JobId, JobState, JobStatus, JobType, Queue, Tenant, Timestamp};

use crate::JobSummary;

/// The most jobs of one kind that [`Store::recent`](crate::Store::recent) shows.
pub const MAX_RECENT: usize = 10_000;

/// What happened lately, as it stood at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent {
    /// The moment, by the store's clock.
    pub now: Timestamp,
    /// The jobs; one that is of two kinds may be there twice, the same.
    pub jobs: Vec<Glimpse>,
    /// Whether there were more than the limit allows.
    pub more: bool,
}

/// A job as those see it who follow many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glimpse {
    /// Its identity.
    pub id: JobId,
    /// What kind of work it is.
    pub job_type: JobType,
    /// Where it waits.
    pub queue: Queue,
    /// Whose it is.
    pub tenant: Tenant,
    /// Where it stands.
    pub state: JobState,
    /// Since when.
    pub at: Timestamp,
}

impl Glimpse {
    /// The word that clients see.
    pub const fn status(&self) -> JobStatus {
        self.state.status()
    }
}

impl From<JobSummary> for Glimpse {
    fn from(job: JobSummary) -> Self {
        let JobSummary { id, job_type, queue, tenant, state, updated_at: at, .. } = job;
        Self { id, job_type, queue, tenant, state, at }
    }
}
