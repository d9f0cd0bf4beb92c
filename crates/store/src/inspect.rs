//! Filters, pages and summaries for reading jobs and queues.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use orchestrix_core::{
    FieldError, IdempotencyKey, Job, JobId, JobState, JobStatus, JobType, Priority, Progress, Queue, Tag, Tenant,
    Timestamp, WorkerName,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::{earlier, later};

/// A filter for jobs. Every field that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
// An unknown field must be an error: ignoring it would match jobs that the filter excludes.
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct JobFilter {
    /// Any of these states; empty for all.
    pub states: Vec<JobState>,
    /// The queue.
    pub queue: Option<Queue>,
    /// The job type.
    pub job_type: Option<JobType>,
    /// The tenant.
    pub tenant: Option<Tenant>,
    /// A tag.
    pub tag: Option<Tag>,
    /// Text that the type, correlation id, idempotency key or reason contains.
    pub text: Option<String>,
    /// Enqueued at or after this time. Near the bounds, a job whose id is off by more than [`MAX_SKEW`] may be missed.
    pub from: Option<Timestamp>,
    /// Enqueued before this time, with the same caveat.
    pub to: Option<Timestamp>,
}

impl JobFilter {
    /// Whether every field that is set matches.
    pub fn matches(&self, job: &JobSummary) -> bool {
        fn is<T: PartialEq>(required: Option<&T>, value: &T) -> bool {
            required.is_none_or(|required| required == value)
        }
        (self.states.is_empty() || self.states.contains(&job.state))
            && is(self.queue.as_ref(), &job.queue)
            && is(self.job_type.as_ref(), &job.job_type)
            && is(self.tenant.as_ref(), &job.tenant)
            && self.tag.as_ref().is_none_or(|tag| job.tags.contains(tag))
            && self.from.is_none_or(|from| job.created_at >= from)
            && self.to.is_none_or(|to| job.created_at < to)
            && self.text.as_ref().is_none_or(|text| job.contains_text(text))
    }

    /// The range of ids before `cursor` in which jobs can match. A list starts at its end and stops at its start, so
    /// jobs enqueued earlier or later are not scanned.
    pub fn id_range(&self, cursor: Option<JobId>) -> Range<JobId> {
        let start = self.from.map_or(JobId::from_uuid(Uuid::nil()), |from| JobId::floor(earlier(from, MAX_SKEW)));
        let newest = self.to.map(|to| JobId::floor(later(to, MAX_SKEW)));
        let end = cursor.into_iter().chain(newest).min().unwrap_or(JobId::from_uuid(Uuid::max()));
        start..end.max(start)
    }

    /// The filter as stores keep it.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names, states and times are plain JSON")
    }

    /// Parses a stored filter.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

/// How far the time in a job's id may be from the time at which the job was enqueued.
///
/// The first comes from the clock of the process that made the id, which ids may exceed by
/// [`JobIds::MAX_AHEAD`](orchestrix_core::JobIds::MAX_AHEAD); the second from the database, at the start of the
/// transaction. Lists by time scan this much more on both sides, so it is no longer than clocks and transactions need.
pub const MAX_SKEW: Duration = Duration::from_secs(3600);

/// Which page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest<C> {
    /// The cursor that the previous page returned; `None` for the first page.
    pub cursor: Option<C>,
    /// The most items.
    pub limit: usize,
}

impl<C> PageRequest<C> {
    /// The most items per page.
    pub const MAX_LIMIT: usize = 1_000;

    /// The first page.
    pub const fn first(limit: usize) -> Self {
        Self { cursor: None, limit }
    }

    /// The page after `cursor`.
    pub const fn after(cursor: C, limit: usize) -> Self {
        Self { cursor: Some(cursor), limit }
    }

    /// Validates the limit.
    pub fn validate(&self) -> Result<(), FieldError> {
        if (1..=Self::MAX_LIMIT).contains(&self.limit) {
            return Ok(());
        }
        Err(FieldError::new("limit", format!("must be from 1 to {}, not {}", Self::MAX_LIMIT, self.limit)))
    }
}

/// The most rows scanned for one page, however few match.
pub const MAX_SCAN: usize = 10_000;

/// One page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T, C> {
    /// The items.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` after the last.
    pub next: Option<C>,
}

impl<T, C> Page<T, C> {
    /// An empty last page.
    pub const fn empty() -> Self {
        Self { items: Vec::new(), next: None }
    }
}

/// A job without its payload, result and attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSummary {
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
    /// The priority.
    pub priority: Priority,
    /// Attempts used.
    pub attempts: u16,
    /// The attempt budget.
    pub max_attempts: u16,
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
    /// The worker that owns it or ran it last.
    pub worker: Option<WorkerName>,
    /// Whether its owner has been asked to stop.
    pub cancel_requested: bool,
    /// The progress that its worker last reported.
    pub progress: Option<Progress>,
    /// Why it was cancelled or died.
    pub reason: Option<String>,
    /// The client's correlation id.
    pub correlation_id: Option<String>,
    /// The client's idempotency key.
    pub idempotency_key: Option<IdempotencyKey>,
    /// The tags.
    pub tags: Vec<Tag>,
}

impl JobSummary {
    /// The status that clients see.
    pub const fn status(&self) -> JobStatus {
        self.state.status()
    }

    fn contains_text(&self, text: &str) -> bool {
        let key = self.idempotency_key.as_ref().map(IdempotencyKey::as_str);
        let texts = [Some(self.job_type.as_str()), self.correlation_id.as_deref(), key, self.reason.as_deref()];
        texts.into_iter().flatten().any(|field| field.contains(text))
    }
}

impl From<&Job> for JobSummary {
    fn from(job: &Job) -> Self {
        Self {
            id: job.id,
            state: job.state,
            job_type: job.job_type.clone(),
            queue: job.queue.clone(),
            tenant: job.tenant.clone(),
            priority: job.priority,
            attempts: job.attempts,
            max_attempts: job.max_attempts,
            created_at: job.created_at,
            updated_at: job.updated_at,
            eligible_at: job.eligible_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            worker: job.worker.clone(),
            cancel_requested: job.cancel_requested,
            progress: job.progress.clone(),
            reason: job.reason.clone(),
            correlation_id: job.correlation_id.clone(),
            idempotency_key: job.idempotency_key.clone(),
            tags: job.tags.clone(),
        }
    }
}

/// The largest limit of [`claimable_lanes`](crate::QueueStore::claimable_lanes).
pub const MAX_LANES: usize = 10_000;

/// The depth of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueDepth {
    /// The queue.
    pub queue: Queue,
    /// Whether claims from it are paused.
    pub paused: bool,
    /// The number of jobs in each unfinished state, without states that have none.
    pub counts: BTreeMap<JobState, u64>,
    /// How long its oldest claimable job has been eligible.
    pub oldest: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn a_list_by_time_covers_the_ids_of_that_time_and_an_hour_more() {
        const HOUR: i64 = 3600;
        let (from, to) = (at(100 * HOUR), at(101 * HOUR));
        let filter = JobFilter { from: Some(from), to: Some(to), ..JobFilter::default() };
        let (first, last) = (JobId::floor(at(99 * HOUR)), JobId::floor(at(102 * HOUR)));
        assert_eq!(filter.id_range(None), first..last);
        let middle = JobId::floor(at(100 * HOUR));
        assert_eq!(filter.id_range(Some(middle)), first..middle);
        assert_eq!(filter.id_range(Some(JobId::floor(at(103 * HOUR)))), first..last, "it does not start after its end");
        assert!(filter.id_range(Some(JobId::floor(at(98 * HOUR)))).is_empty(), "nor end before its start");
    }

    #[test]
    fn a_filter_without_times_covers_all_ids() {
        let all = JobId::from_uuid(Uuid::nil())..JobId::from_uuid(Uuid::max());
        assert_eq!(JobFilter::default().id_range(None), all);
        let ever = JobFilter { from: Some(Timestamp::MIN), to: Some(Timestamp::MAX), ..JobFilter::default() };
        assert!(ever.id_range(None).contains(&JobId::new(at(4_000_000_000), [0xff; 10])));
        assert!(JobFilter { from: Some(at(2)), to: Some(at(1)), ..ever }.id_range(None).start <= JobId::floor(at(1)));
    }
}
