//! What the end of an attempt does to a job, whoever ended it: its worker, the reaper or the clock.

use std::time::Duration;

use orchestrix_core::{
    AttemptOutcome, AttemptRecord, Failure, JobId, JobState, Json, Lifecycle, RetryPolicy, Timestamp,
};

use super::{
    row::{Ended, Row},
    tables::Tables,
};
use crate::{Result, Verdict, clock::later};

/// How an attempt ended, and all that depends on who ended it.
#[derive(Debug)]
pub(super) struct End {
    pub(super) outcome: AttemptOutcome,
    pub(super) failure: Failure,
    /// Losses in a row that kill the job.
    pub(super) crash_loop: u16,
    pub(super) error: Option<String>,
    pub(super) result: Option<Json>,
    /// How long to wait before the next attempt, where the job's own policy does not say.
    pub(super) wait: Option<Duration>,
}

impl End {
    /// An end with nothing more to say about it.
    pub(super) fn plain(outcome: AttemptOutcome) -> Self {
        let crash_loop = Lifecycle::CRASH_LOOP;
        Self { outcome, failure: Failure::Retryable, crash_loop, error: None, result: None, wait: None }
    }

    fn reason(&self, decided: &Lifecycle) -> Option<&'static str> {
        match decided.state {
            JobState::Cancelled => Some("requested"),
            JobState::Dead if self.failure == Failure::Fatal => Some("fatal"),
            JobState::Dead if self.outcome == AttemptOutcome::Lost && decided.losses >= self.crash_loop => {
                Some("crash_loop")
            }
            JobState::Dead => Some("attempts_exhausted"),
            _ => None,
        }
    }

    fn wait(&self, policy: &RetryPolicy, decided: &Lifecycle) -> Duration {
        match decided.state {
            JobState::Retrying => self.wait.unwrap_or_else(|| policy.delay(decided.attempts, &mut rand::rng())),
            _ => self.wait.unwrap_or_default(),
        }
    }
}

impl From<Verdict> for End {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Complete { result } => Self { result, ..Self::plain(AttemptOutcome::Completed) },
            Verdict::Fail { error, retryable, retry_after } => Self {
                failure: if retryable { Failure::Retryable } else { Failure::Fatal },
                error: Some(AttemptRecord::error_text(&error)),
                wait: retry_after,
                ..Self::plain(AttemptOutcome::Failed)
            },
            Verdict::Snooze(delay) => Self { wait: Some(delay), ..Self::plain(AttemptOutcome::Snoozed) },
            Verdict::Release => Self::plain(AttemptOutcome::Released),
            Verdict::Cancelled => Self::plain(AttemptOutcome::Cancelled),
        }
    }
}

impl Tables {
    /// Ends the running attempt of a leased job. Those that wait for the job are to be
    /// [settled](Tables::settle) by the caller.
    pub(super) fn end_attempt(&mut self, id: JobId, end: End, now: Timestamp) -> Result<JobState> {
        let decided = self.row(id)?.lifecycle().end(end.outcome, end.failure, end.crash_loop)?;
        self.update(id, |row| {
            row.log(&end, decided.state, now);
            row.decide(decided, now);
            row.timeout_at = None;
            let job = &mut row.job;
            job.lease_expires_at = None;
            if decided.state.is_terminal() {
                job.finished_at = Some(now);
                job.reason = end.reason(&decided).map(Into::into);
                job.result = end.result;
            } else {
                job.eligible_at = later(now, end.wait(&job.retry, &decided));
            }
            decided.state
        })
    }
}

impl Row {
    // A job that succeeds at once, as most do, keeps no record of it.
    fn log(&mut self, end: &End, led_to: JobState, now: Timestamp) {
        let (Some(secret), Some(started_at)) = (self.secret, self.job.started_at) else { return };
        if end.outcome == AttemptOutcome::Completed && self.ended.is_empty() {
            return;
        }
        let record = AttemptRecord {
            attempt: self.job.attempts + 1,
            lease: self.job.leases,
            outcome: end.outcome,
            worker: self.job.worker.clone(),
            started_at,
            ended_at: now,
            error: end.error.clone(),
        };
        self.remember(Ended { record, secret, led_to });
    }
}
