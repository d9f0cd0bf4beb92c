//! What readers ask for and what they see.

use std::{collections::BTreeMap, time::Duration};

use orchestrix_core::{
    FieldError, IdempotencyKey, JobId, JobState, JobStatus, JobType, Priority, Progress, Queue, Tag, Tenant, Timestamp,
    WorkerName,
};
use serde::{Deserialize, Serialize};

/// Which jobs; every part that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
// A part that this program does not know must not be passed over: the filter would match jobs that it was to leave out.
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct JobFilter {
    /// In any of these states; empty for all.
    pub states: Vec<JobState>,
    /// In this queue.
    pub queue: Option<Queue>,
    /// Of this type.
    pub job_type: Option<JobType>,
    /// Of this tenant.
    pub tenant: Option<Tenant>,
    /// With this tag.
    pub tag: Option<Tag>,
    /// Whose type, correlation id, idempotency key or reason holds this text.
    pub text: Option<String>,
    /// Recorded at or after.
    pub from: Option<Timestamp>,
    /// Recorded before.
    pub to: Option<Timestamp>,
}

impl JobFilter {
    /// Whether every part that is set matches.
    pub fn matches(&self, job: &JobSummary) -> bool {
        fn is<T: PartialEq>(wanted: Option<&T>, value: &T) -> bool {
            wanted.is_none_or(|wanted| wanted == value)
        }
        (self.states.is_empty() || self.states.contains(&job.state))
            && is(self.queue.as_ref(), &job.queue)
            && is(self.job_type.as_ref(), &job.job_type)
            && is(self.tenant.as_ref(), &job.tenant)
            && self.tag.as_ref().is_none_or(|tag| job.tags.contains(tag))
            && self.from.is_none_or(|from| job.created_at >= from)
            && self.to.is_none_or(|to| job.created_at < to)
            && self.text.as_ref().is_none_or(|text| job.holds(text))
    }

    /// The filter as a database keeps it.
    pub fn written(&self) -> String {
        serde_json::to_string(self).expect("names, states and times are plain JSON")
    }

    /// Reads what a database kept.
    pub fn read(column: &str) -> serde_json::Result<Self> {
        serde_json::from_str(column)
    }
}

/// Which part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest<C> {
    /// Where the previous page ended; `None` begins.
    pub cursor: Option<C>,
    /// How many items at most.
    pub limit: usize,
}

impl<C> PageRequest<C> {
    /// The most items one page may hold.
    pub const MAX_LIMIT: usize = 1_000;

    /// The first page.
    pub const fn first(limit: usize) -> Self {
        Self { cursor: None, limit }
    }

    /// What follows `cursor`.
    pub const fn after(cursor: C, limit: usize) -> Self {
        Self { cursor: Some(cursor), limit }
    }

    /// Checks the limit.
    pub fn validate(&self) -> Result<(), FieldError> {
        if (1..=Self::MAX_LIMIT).contains(&self.limit) {
            return Ok(());
        }
        Err(FieldError::new("limit", format!("must be from 1 to {}, not {}", Self::MAX_LIMIT, self.limit)))
    }
}

/// The rows looked at for one page, whatever the filter lets through.
pub const MAX_SCAN: usize = 10_000;

/// Part of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T, C> {
    /// What matched.
    pub items: Vec<T>,
    /// Where the next page begins; `None` when there is nothing more.
    pub next: Option<C>,
}

/// A job in a list: no payload, no result, no history.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSummary {
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
impl<T, C> Page<T, C> {
    /// Nothing, and nothing more.
    pub const fn empty() -> Self {
        Self { items: Vec::new(), next: None }
    }
}

    /// The attempt budget.
    pub max_attempts: u16,
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
    /// Who owns it, or ran it last.
    pub worker: Option<WorkerName>,
    /// Whether its owner was asked to stop.
    pub cancel_requested: bool,
    /// How far it has come.
    pub progress: Option<Progress>,
    /// Why it was cancelled or died, in a word.
    pub reason: Option<String>,
    /// The caller's id for the larger whole.
    pub correlation_id: Option<String>,
    /// The client's name for the request.
    pub idempotency_key: Option<IdempotencyKey>,
    /// Words to find it by.
    pub tags: Vec<Tag>,
}

impl JobSummary {
    /// The word that clients see.
    pub const fn status(&self) -> JobStatus {
        self.state.status()
    }

    fn holds(&self, text: &str) -> bool {
        let key = self.idempotency_key.as_ref().map(IdempotencyKey::as_str);
        let texts = [Some(self.job_type.as_str()), self.correlation_id.as_deref(), key, self.reason.as_deref()];
        texts.into_iter().flatten().any(|held| held.contains(text))
    }
}

/// The most lanes that [`Store::lanes`](crate::Store::lanes) lists.
pub const MAX_LANES: usize = 10_000;

/// What one queue holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueDepth {
    /// The queue.
    pub queue: Queue,
    /// Whether claims from it are stopped.
    pub paused: bool,
    /// Jobs by state; unfinished states only, and only those that have any.
    pub counts: BTreeMap<JobState, u64>,
    /// How long its oldest claimable job has waited.
    pub oldest: Option<Duration>,
}
