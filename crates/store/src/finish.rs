//! How a worker ends an attempt, and what it says along the way.

use std::time::Duration;

use orchestrix_core::{FieldError, Json, LeaseToken, NewJob, Progress};
use thiserror::Error;

/// The end of one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct OutcomeReport {
    /// Whose attempt.
    pub token: LeaseToken,
    /// How it ended.
    pub outcome: Outcome,
}

impl OutcomeReport {
    /// The most attempts one call may end.
    pub const MAX_ITEMS: usize = 10_000;

    /// Checks the size of a call.
    pub fn validate(items: &[Self]) -> Result<(), FieldError> {
        if items.len() <= Self::MAX_ITEMS {
            return Ok(());
        }
        Err(FieldError::new("items", format!("may hold at most {}, holds {}", Self::MAX_ITEMS, items.len())))
    }
}

/// A worker's outcome on its own attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Done, with what it left behind.
    Complete {
        /// Kept with the job.
        result: Option<Json>,
    },
    /// It went wrong.
    Fail {
        /// What went wrong.
        error: String,
        /// Whether another try may help.
        retryable: bool,
        /// Wait this long instead of the job's own back-off.
        retry_after: Option<Duration>,
    },
    /// Give it to somebody again after this long. Costs no attempt.
    Snooze(Duration),
    /// Hand it back unfinished. Costs no attempt.
    Release,
    /// It stopped because it was asked to.
    Cancelled,
    /// It ran over its time and was stopped. Counts as what [`time_out`](crate::Store::time_out) does to an attempt that
    /// nobody stopped, and is answered as a repeat where that came first.
    TimedOut,
}

impl Outcome {
    /// Success without a result.
    pub const DONE: Self = Self::Complete { result: None };

    /// A failure worth another try.
    pub fn fail(error: impl Into<String>) -> Self {
        Self::Fail { error: error.into(), retryable: true, retry_after: None }
    }

    /// Checks the limits.
    pub fn validate(&self) -> Result<(), FieldError> {
        let too_long = |field: &str, delay: Duration| {
            if delay > NewJob::MAX_DELAY {
                return Err(FieldError::new(field, format!("must be at most {}", NewJob::MAX_DELAY.as_secs())));
            }
            Ok(())
        };
        match self {
            Self::Fail { retry_after: Some(delay), .. } => too_long("retryAfterSeconds", *delay),
            Self::Snooze(delay) => too_long("seconds", *delay),
            _ => Ok(()),
        }
    }
}

/// Why one item of a batch was refused; nothing of it was written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FinishError {
    /// The token does not own its job any more.
    #[error("the lease is lost")]
    LeaseLost,
    /// The outcome breaks a rule.
    #[error("{0}")]
    Invalid(FieldError),
}

/// What a worker says while it works. `None` leaves what was said before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgressUpdate {
    /// How far it has come.
    pub progress: Option<Progress>,
    /// What the next attempt should get back.
    pub checkpoint: Option<Json>,
}

impl ProgressUpdate {
    /// The longest progress message, in bytes.
    pub const MAX_MESSAGE: usize = 1_024;

    /// Checks the limits.
    pub fn validate(&self) -> Result<(), FieldError> {
        let Some(progress) = &self.progress else { return Ok(()) };
        if progress.percent.is_some_and(|percent| !(0.0..=100.0).contains(&percent)) {
            return Err(FieldError::new("percent", "must be from 0 to 100"));
        }
        if progress.message.as_ref().is_some_and(|text| text.len() > Self::MAX_MESSAGE || text.contains('\0')) {
            return Err(FieldError::new(
                "message",
                format!("must have at most {} bytes and no NUL", Self::MAX_MESSAGE),
            ));
        }
        Ok(())
    }
}
