//! A job and what only the store knows of it.

use std::collections::VecDeque;

use orchestrix_core::{AttemptOutcome, AttemptRecord, Job, JobState, LeaseToken, Lifecycle, Timestamp};
use uuid::Uuid;

use orchestrix_store::{EndedAttempt, JobSummary};

/// One job in the store.
#[derive(Debug)]
pub(crate) struct Row {
    /// The job; its `attempt_log` stays empty here and is made of `ended` when the job is read.
    pub(crate) job: Job,
    /// The secret of its latest lease.
    pub(crate) secret: Option<Uuid>,
    /// When its running attempt is over its time.
    pub(crate) timeout_at: Option<Timestamp>,
    /// How many of the jobs it waits for have not finished.
    pub(crate) unmet: usize,
    /// Its latest ended attempts, oldest first.
    pub(crate) ended: VecDeque<Ended>,
}

/// An attempt that has ended, with what it takes to recognise a repeat of its outcome.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) record: AttemptRecord,
    pub(crate) secret: Uuid,
}

impl Row {
    /// The part of the job that decisions are made of.
    pub(crate) fn lifecycle(&self) -> Lifecycle {
        let Job { state, attempts, max_attempts, losses, cancel_requested, .. } = self.job;
        Lifecycle { state, attempts, max_attempts, losses, cancel_requested }
    }

    /// Writes down what was decided at `now`.
    pub(crate) fn decide(&mut self, decided: Lifecycle, now: Timestamp) {
        let Lifecycle { state, attempts, max_attempts, losses, cancel_requested } = decided;
        if self.job.state != state {
            self.job.updated_at = now;
        }
        self.job.state = state;
        self.job.attempts = attempts;
        self.job.max_attempts = max_attempts;
        self.job.losses = losses;
        self.job.cancel_requested = cancel_requested;
    }

    /// A job that had to wait for something else became eligible only when that was over.
    pub(crate) fn wait_from(&mut self, now: Timestamp) {
        if self.job.state == JobState::Pending {
            self.job.eligible_at = self.job.eligible_at.max(now);
        }
    }

    /// Whether `token` owns the job now. An expired lease owns it until somebody takes it back.
    pub(crate) fn is_owned_by(&self, token: &LeaseToken) -> bool {
        self.job.state.is_leased() && self.was_last_leased_to(token)
    }

    fn was_last_leased_to(&self, token: &LeaseToken) -> bool {
        self.job.leases == token.counter && self.secret == Some(token.secret)
    }

    /// The state that `end` led to, if `token` ended its attempt just so before.
    pub(crate) fn repeated(&self, token: &LeaseToken, end: &EndedAttempt) -> Option<JobState> {
        // A first success leaves no record. Being final, it needs none: the job itself tells.
        if end.outcome == AttemptOutcome::Completed {
            let same = self.job.state == JobState::Completed
                && self.was_last_leased_to(token)
                && end.left(self.job.result.as_ref().map(|json| json.as_str()));
            return same.then_some(JobState::Completed);
        }
        let ended = self.ended.iter().rev().find(|e| e.record.lease == token.counter && e.secret == token.secret)?;
        (ended.record.outcome == end.outcome && ended.record.error == end.error).then_some(ended.record.led_to)
    }

    /// Remembers an attempt; the oldest gives way.
    pub(crate) fn remember(&mut self, ended: Ended) {
        if self.ended.len() == AttemptRecord::KEPT {
            self.ended.pop_front();
        }
        self.ended.push_back(ended);
    }

    /// All that readers may know.
    pub(crate) fn read(&self) -> Job {
        Job { attempt_log: self.ended.iter().map(|ended| ended.record.clone()).collect(), ..self.job.clone() }
    }

    /// What lists show.
    pub(crate) fn summary(&self) -> JobSummary {
        let job = &self.job;
        JobSummary {
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
