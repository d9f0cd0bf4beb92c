//! What the end of an attempt means for its job, whoever ended it: its worker, the reaper or the clock. Every store
//! decides by this; how the decision is written down is its own.

use std::time::Duration;

use orchestrix_core::{
    AttemptOutcome, AttemptRecord, Failure, IllegalTransition, JobState, Json, Lifecycle, RetryPolicy,
};

use crate::Outcome;

/// How an attempt ended, and all that depends on who ended it.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedAttempt {
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// Whether another try may help.
    pub failure: Failure,
    /// Losses in a row that kill the job.
    pub crash_loop: u16,
    /// What went wrong, fit to be stored.
    pub error: Option<String>,
    /// What it left behind.
    pub result: Option<Json>,
    /// How long to wait before the next attempt, where the job's own policy does not say.
    pub wait: Option<Duration>,
}

/// What becomes of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// Where it stands from now on.
    pub lifecycle: Lifecycle,
    /// Why it was cancelled or died.
    pub reason: Option<&'static str>,
    /// How long until it is eligible, if it is not over.
    pub wait: Duration,
}

impl EndedAttempt {
    /// An end with nothing more to say about it.
    pub fn plain(outcome: AttemptOutcome) -> Self {
        let crash_loop = Lifecycle::CRASH_LOOP;
        Self { outcome, failure: Failure::Retryable, crash_loop, error: None, result: None, wait: None }
    }

    /// The end of a lease that ran out; `crash_loop` of them in a row kill the job.
    pub fn lost(crash_loop: u16) -> Self {
        Self { crash_loop, ..Self::plain(AttemptOutcome::Lost) }
    }

    /// Whether this is what an attempt left behind: a worker that writes it anew to tell it again may write it otherwise.
    pub fn left(&self, result: Option<&str>) -> bool {
        match (&self.result, result) {
            (Some(json), Some(text)) => json.means(text),
            (this, that) => this.is_none() && that.is_none(),
        }
    }

    /// Decides what becomes of a job with this lifecycle and this policy. The jitter of a back-off is drawn here.
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
