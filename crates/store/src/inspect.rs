//! What readers ask for and what they see.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use orchestrix_core::{
    FieldError, IdempotencyKey, JobId, JobState, JobStatus, JobType, Priority, Progress, Queue, Tag, Tenant, Timestamp,
    WorkerName,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::{earlier, later};

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
    /// Recorded at or after. A job whose id says a time more than [`MAX_SKEW`] away from that may be passed over near the ends of what is asked for.
    pub from: Option<Timestamp>,
    /// Recorded before. The same holds.
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

    /// Between which ids jobs that match can be, of those before `cursor`: a list begins before the end and stops at the start, so that
    /// what was recorded later or earlier is not even passed over.
    pub fn span(&self, cursor: Option<JobId>) -> Range<JobId> {
        let start = self.from.map_or(JobId::from_uuid(Uuid::nil()), |from| JobId::floor(earlier(from, MAX_SKEW)));
        let newest = self.to.map(|to| JobId::floor(later(to, MAX_SKEW)));
        let end = cursor.into_iter().chain(newest).min().unwrap_or(JobId::from_uuid(Uuid::max()));
        start..end.max(start)
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

/// How far the time in a job's id may be from the one at which the job was recorded. The first is its maker's, the second the database's, at the
/// beginning of the transaction; and ids may be ahead of their maker's clock by [`JobIds::MOST_AHEAD`](orchestrix_core::JobIds::MOST_AHEAD).
/// Lists by time look through so much more than was asked for at either end, so it is no longer than clocks and transactions need.
pub const MAX_SKEW: Duration = Duration::from_secs(3600);

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

impl<T, C> Page<T, C> {
    /// Nothing, and nothing more.
    pub const fn empty() -> Self {
        Self { items: Vec::new(), next: None }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn a_list_by_time_spans_the_ids_of_that_time_and_an_hour_more() {
        const HOUR: i64 = 3600;
        let (from, to) = (at(100 * HOUR), at(101 * HOUR));
        let filter = JobFilter { from: Some(from), to: Some(to), ..JobFilter::default() };
        let (first, last) = (JobId::floor(at(99 * HOUR)), JobId::floor(at(102 * HOUR)));
        assert_eq!(filter.span(None), first..last);
        let middle = JobId::floor(at(100 * HOUR));
        assert_eq!(filter.span(Some(middle)), first..middle);
        assert_eq!(
            filter.span(Some(JobId::floor(at(103 * HOUR)))),
            first..last,
            "it does not begin later than its end"
        );
        assert!(filter.span(Some(JobId::floor(at(98 * HOUR)))).is_empty(), "nor before its beginning");
    }

    #[test]
    fn without_times_all_ids_are_spanned() {
        let all = JobId::from_uuid(Uuid::nil())..JobId::from_uuid(Uuid::max());
        assert_eq!(JobFilter::default().span(None), all);
        let ever = JobFilter { from: Some(Timestamp::MIN), to: Some(Timestamp::MAX), ..JobFilter::default() };
        assert!(ever.span(None).contains(&JobId::new(at(4_000_000_000), [0xff; 10])));
        assert!(JobFilter { from: Some(at(2)), to: Some(at(1)), ..ever }.span(None).start <= JobId::floor(at(1)));
    }
}
