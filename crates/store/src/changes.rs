//! What changed recently, for whoever follows many jobs without knowing their ids.

use std::time::Duration;

use orchestrix_core::{JobId, JobState, JobStatus, JobType, Queue, Tenant, Timestamp};

use crate::{JobSummary, Result, housekeeping::check_limit};

/// The most jobs of one kind that [`Store::recent`](crate::Store::recent) shows.
pub const MAX_CHANGES: usize = 10_000;

/// How many times as many are shown of those that were recorded: they come in batches of ten thousand, and whoever looks for those that were
/// long in their transactions meets each of them several times.
pub const ENQUEUED_FACTOR: usize = 5;

/// How many ids of unfinished jobs are shown at a time.
pub const MAX_CHANGE_IDS: usize = 2_000;

/// How long it is remembered that a job was given another chance; longer than anybody looks back.
pub const REDRIVEN_RETENTION: Duration = Duration::from_secs(600);

/// What is to be shown of what changed recently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangesQuery {
    /// Jobs that were recorded from then on; without it, none of those.
    pub enqueued_since: Option<Timestamp>,
    /// Jobs that ended from then on, in whichever way.
    pub finished_since: Option<Timestamp>,
    /// Jobs that were cancelled from then on, which may reach back further: a job that nobody owns is cancelled in a transaction that may
    /// have taken long, and then counts as cancelled when it began.
    pub cancelled_since: Option<Timestamp>,
    /// Jobs that were given another chance from then on and are not over again. Nothing else tells of them: their ids are old, and nobody owns
    /// them yet. As many are looked at as are shown of each kind.
    pub redriven_since: Option<Timestamp>,
    /// Ids of unfinished jobs behind this one, a page of them. Whoever goes through all that are not old, again and again, finds what was
    /// recorded in a transaction that took long, or under an id made by a clock that is behind.
    pub ids_after: Option<JobId>,
    /// Leased jobs behind this place; without it, from the first on.
    pub leased_after: Option<LeaseCursor>,
    /// The most of each kind; of those that were recorded [`ENQUEUED_FACTOR`] as many.
    pub limit: usize,
}

impl ChangesQuery {
    /// What is leased, from the first on, and nothing else.
    pub const fn leased(limit: usize) -> Self {
        Self {
            enqueued_since: None,
            finished_since: None,
            cancelled_since: None,
            redriven_since: None,
            ids_after: None,
            leased_after: None,
            limit,
        }
    }

    /// Refuses limits out of range.
    pub fn validate(&self) -> Result<()> {
        Ok(check_limit(self.limit, MAX_CHANGES)?)
    }
}

/// A place among leased jobs, which stand in the order in which their leases run out. One whose lease is renewed moves on: whoever goes
/// through all of them meets it again rather than not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseCursor {
    /// When the lease runs out.
    pub expires_at: Timestamp,
    /// Whose.
    pub id: JobId,
}

/// What changed recently, as it stood at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesPage {
    /// The moment, by the store's clock.
    pub now: Timestamp,
    /// The jobs; one that is of two kinds may be there twice, the same.
    pub jobs: Vec<JobChange>,
    /// Whether more were recorded, revived or ended than the limit allows.
    pub more: bool,
    /// Ids of unfinished jobs, in their order, if they were asked for.
    pub ids: Vec<JobId>,
    /// Where to go on with those, unless that was the last page.
    pub ids_next: Option<JobId>,
    /// When the first lease runs out of those that are shown.
    pub leased_from: Option<Timestamp>,
    /// Where to go on, if more are leased than the limit allows.
    pub leased_next: Option<LeaseCursor>,
}

/// A job as those see it who follow many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobChange {
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

impl ChangesPage {
    /// Nothing has happened until then.
    pub const fn none(now: Timestamp) -> Self {
        Self {
            now,
            jobs: Vec::new(),
            more: false,
            ids: Vec::new(),
            ids_next: None,
            leased_from: None,
            leased_next: None,
        }
    }
}

impl JobChange {
    /// The word that clients see.
    pub const fn status(&self) -> JobStatus {
        self.state.status()
    }
}

impl From<JobSummary> for JobChange {
    fn from(job: JobSummary) -> Self {
        let JobSummary { id, job_type, queue, tenant, state, updated_at: at, .. } = job;
        Self { id, job_type, queue, tenant, state, at }
    }
}
