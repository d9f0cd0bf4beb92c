//! A job with its private columns.

use std::collections::VecDeque;

use orchestrix_core::{AttemptOutcome, AttemptRecord, Job, JobState, LeaseToken, Lifecycle, Timestamp};
use uuid::Uuid;

use orchestrix_store::{EndedAttempt, JobSummary};

/// One job in the store.
#[derive(Debug)]
pub(crate) struct Row {
    /// The job. Its `attempt_log` is empty here and built from `ended` on reads.
    pub(crate) job: Job,
    /// The position of its tenant on the ring.
    pub(crate) ring: i64,
    /// The secret of its latest lease.
    pub(crate) secret: Option<Uuid>,
    /// When its running attempt times out.
    pub(crate) timeout_at: Option<Timestamp>,
    /// The number of unfinished parents.
    pub(crate) unmet: usize,
    /// Its latest ended attempts, oldest first.
    pub(crate) ended: VecDeque<AttemptEntry>,
}

/// An ended attempt, with the secret that identifies a repeated report of it.
#[derive(Debug)]
pub(crate) struct AttemptEntry {
    pub(crate) record: AttemptRecord,
    pub(crate) secret: Uuid,
}

impl Row {
    /// The part of the job that transitions depend on.
    pub(crate) fn lifecycle(&self) -> Lifecycle {
        let Job { state, attempts, max_attempts, losses, cancel_requested, .. } = self.job;
        Lifecycle { state, attempts, max_attempts, losses, cancel_requested }
    }

    /// Writes a new lifecycle, decided at `now`.
    pub(crate) fn apply(&mut self, next: Lifecycle, now: Timestamp) {
        let Lifecycle { state, attempts, max_attempts, losses, cancel_requested } = next;
        if self.job.state != state {
            self.job.updated_at = now;
        }
        self.job.state = state;
        self.job.attempts = attempts;
        self.job.max_attempts = max_attempts;
        self.job.losses = losses;
        self.job.cancel_requested = cancel_requested;
    }

    /// Makes a job that waited for something other than its time eligible from `now`.
    pub(crate) fn wait_from(&mut self, now: Timestamp) {
        if self.job.state == JobState::Pending {
            self.job.eligible_at = self.job.eligible_at.max(now);
        }
    }

    /// Whether `token` owns the job. An expired lease owns it until it is reaped.
    pub(crate) fn is_owned_by(&self, token: &LeaseToken) -> bool {
        self.job.state.is_leased() && self.was_last_leased_to(token)
    }

    fn was_last_leased_to(&self, token: &LeaseToken) -> bool {
        self.job.leases == token.counter && self.secret == Some(token.secret)
    }

    /// The state that `end` led to, if `token` reported the same end before.
    pub(crate) fn repeated(&self, token: &LeaseToken, end: &EndedAttempt) -> Option<JobState> {
        // A first success leaves no record and needs none: it is final, so the job itself shows it.
        if end.outcome == AttemptOutcome::Completed {
            let same = self.job.state == JobState::Completed
                && self.was_last_leased_to(token)
                && end.has_result(self.job.result.as_ref().map(|json| json.as_str()));
            return same.then_some(JobState::Completed);
        }
        let ended = self.ended.iter().rev().find(|e| e.record.lease == token.counter && e.secret == token.secret)?;
        (ended.record.outcome == end.outcome && ended.record.error == end.error).then_some(ended.record.led_to)
    }

    /// Adds an ended attempt, dropping the oldest beyond the limit.
    pub(crate) fn add_attempt(&mut self, ended: AttemptEntry) {
        if self.ended.len() == AttemptRecord::KEPT {
            self.ended.pop_front();
        }
        self.ended.push_back(ended);
    }

    /// The job with its attempts.
    pub(crate) fn read(&self) -> Job {
        Job { attempt_log: self.ended.iter().map(|ended| ended.record.clone()).collect(), ..self.job.clone() }
    }

    /// The summary of the job.
    pub(crate) fn summary(&self) -> JobSummary {
        JobSummary::from(&self.job)
    }
}
