//! What the end of an attempt does to its job, whether the worker, the reaper or the timeout ended it.
//!
//! Every store decides with this module and only writes the decision.

use std::time::Duration;

use orchestrix_core::{
    AttemptOutcome, AttemptRecord, Failure, IllegalTransition, JobState, Json, Lifecycle, RetryPolicy,
};

use crate::Outcome;

/// An ended attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedAttempt {
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// Whether the job may be retried.
    pub failure: Failure,
    /// After how many losses in a row the job dies.
    pub crash_loop: u16,
    /// The error, ready to be stored.
    pub error: Option<String>,
    /// The result.
    pub result: Option<Json>,
    /// The delay before the next attempt, instead of the job's own back-off.
    pub wait: Option<Duration>,
}

/// What becomes of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// Its new lifecycle.
    pub lifecycle: Lifecycle,
    /// Why it was cancelled or died.
    pub reason: Option<&'static str>,
    /// How long until it is eligible, if it has not finished.
    pub wait: Duration,
}

impl EndedAttempt {
    /// An end without error, result or delay.
    pub fn plain(outcome: AttemptOutcome) -> Self {
        let crash_loop = Lifecycle::CRASH_LOOP;
        Self { outcome, failure: Failure::Retryable, crash_loop, error: None, result: None, wait: None }
    }

    /// The end of an attempt whose lease expired. After `crash_loop` of them in a row the job dies.
    pub fn lost(crash_loop: u16) -> Self {
        Self { crash_loop, ..Self::plain(AttemptOutcome::Lost) }
    }

    /// Whether `result` equals the result of this attempt. A worker that repeats its report may serialise the result
    /// differently.
    pub fn has_result(&self, result: Option<&str>) -> bool {
        match (&self.result, result) {
            (Some(json), Some(text)) => json.equals_text(text),
            (own, other) => own.is_none() && other.is_none(),
        }
    }

    /// Decides the transition of a job with this lifecycle and retry policy. Draws the jitter of the back-off.
    pub fn decide(&self, before: Lifecycle, retry: &RetryPolicy) -> Result<Transition, IllegalTransition> {
        let lifecycle = before.end(self.outcome, self.failure, self.crash_loop)?;
        let reason = match lifecycle.state {
            JobState::Cancelled => Some("requested"),
            JobState::Dead if self.failure == Failure::Fatal => Some("fatal"),
            JobState::Dead if self.outcome == AttemptOutcome::Lost && lifecycle.losses >= self.crash_loop => {
                Some("crash_loop")
            }
            JobState::Dead => Some("attempts_exhausted"),
            _ => None,
        };
        let wait = match (lifecycle.state, self.wait) {
            (JobState::Retrying, None) => retry.delay(lifecycle.attempts, &mut rand::rng()),
            (_, wait) => wait.unwrap_or_default(),
        };
        Ok(Transition { lifecycle, reason, wait })
    }
}

impl From<&Outcome> for EndedAttempt {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Complete { result } => Self { result: result.clone(), ..Self::plain(AttemptOutcome::Completed) },
            Outcome::Fail { error, retryable, retry_after } => Self {
                failure: if *retryable { Failure::Retryable } else { Failure::Fatal },
                error: Some(AttemptRecord::error_text(error)),
                wait: *retry_after,
                ..Self::plain(AttemptOutcome::Failed)
            },
            Outcome::Snooze(delay) => Self { wait: Some(*delay), ..Self::plain(AttemptOutcome::Snoozed) },
            Outcome::Release => Self::plain(AttemptOutcome::Released),
            Outcome::Cancelled => Self::plain(AttemptOutcome::Cancelled),
            Outcome::TimedOut => Self::plain(AttemptOutcome::TimedOut),
        }
    }
}
