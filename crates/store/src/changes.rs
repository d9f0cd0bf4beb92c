//! Recent changes, for live updates about many jobs whose ids the caller does not know.

use std::time::Duration;

use orchestrix_core::{JobId, JobState, JobStatus, JobType, Queue, Tenant, Timestamp};

use crate::{JobSummary, Result, housekeeping::check_limit};

/// The largest limit of [`recent_changes`](crate::JobStore::recent_changes), per kind of change.
pub const MAX_CHANGES: usize = 10_000;

/// The factor by which the limit is larger for enqueued jobs.
///
/// Jobs are enqueued in batches of up to ten thousand, and a caller that looks back far enough to find slow
/// transactions sees each batch several times.
pub const ENQUEUED_FACTOR: usize = 5;

/// The page size of [`ChangesQuery::ids_after`].
pub const MAX_CHANGE_IDS: usize = 2_000;

/// How long a store remembers that a job was redriven. Callers look back less far.
pub const REDRIVEN_RETENTION: Duration = Duration::from_secs(600);

/// Which recent changes to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangesQuery {
    /// Jobs enqueued since then. `None` returns none of them.
    pub enqueued_since: Option<Timestamp>,
    /// Jobs finished since then, in whatever way.
    pub finished_since: Option<Timestamp>,
    /// Jobs cancelled since then, which may reach back further than `finished_since`: a waiting job may be cancelled
    /// in a long transaction, and counts as cancelled when that transaction began.
    pub cancelled_since: Option<Timestamp>,
    /// Jobs redriven since then that are unfinished. No other kind covers them: their ids are old and they are not
    /// leased yet. At most `limit` redrives are examined.
    pub redriven_since: Option<Timestamp>,
    /// A page of ids of unfinished jobs after this one. A caller that repeatedly scans all recent ids finds jobs whose
    /// transaction took long, or whose id was made by a slow clock.
    pub ids_after: Option<JobId>,
    /// Leased jobs after this cursor. `None` starts at the first.
    pub leased_after: Option<LeaseCursor>,
    /// The most jobs of each kind; [`ENQUEUED_FACTOR`] times as many for enqueued jobs.
    pub limit: usize,
}

impl ChangesQuery {
    /// The first page of leased jobs and nothing else.
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

    /// Validates the limit.
    pub fn validate(&self) -> Result<()> {
        Ok(check_limit(self.limit, MAX_CHANGES)?)
    }
}

/// A cursor into leased jobs, which are ordered by when their leases expire.
///
/// A job whose lease is extended moves to the back, so a caller that pages through all of them may see it twice but
/// never misses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseCursor {
    /// When the lease expires.
    pub expires_at: Timestamp,
    /// The job.
    pub id: JobId,
}

/// Recent changes, read in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesPage {
    /// The time of the snapshot, by the store's clock.
    pub now: Timestamp,
    /// The jobs. One that is of two kinds may appear twice.
    pub jobs: Vec<JobChange>,
    /// Whether a limit cut off enqueued, redriven or finished jobs.
    pub more: bool,
    /// Ids of unfinished jobs, in order, if the query asked for them.
    pub ids: Vec<JobId>,
    /// The cursor of the next page of ids, unless this was the last.
    pub ids_next: Option<JobId>,
    /// When the first lease on this page expires.
    pub leased_from: Option<Timestamp>,
    /// The cursor of the next page of leased jobs, unless this was the last.
    pub leased_next: Option<LeaseCursor>,
}

/// A changed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobChange {
    /// The id.
    pub id: JobId,
    /// The job type.
    pub job_type: JobType,
    /// The queue.
    pub queue: Queue,
    /// The tenant.
    pub tenant: Tenant,
    /// The state.
    pub state: JobState,
    /// When the state last changed.
    pub at: Timestamp,
}

impl ChangesPage {
    /// A page without changes.
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
    /// The status that clients see.
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
