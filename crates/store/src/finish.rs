//! Outcomes of attempts, and progress.

use std::time::Duration;

use orchestrix_core::{FieldError, Json, LeaseToken, NewJob, Progress};
use thiserror::Error;

/// A worker's report that an attempt has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct OutcomeReport {
    /// The lease of the attempt.
    pub token: LeaseToken,
    /// The outcome.
    pub outcome: Outcome,
}

impl OutcomeReport {
    /// The most reports per call.
    pub const MAX_ITEMS: usize = 10_000;

    /// Validates the number of reports.
    pub fn validate(items: &[Self]) -> Result<(), FieldError> {
        if items.len() <= Self::MAX_ITEMS {
            return Ok(());
        }
        Err(FieldError::new("items", format!("may hold at most {}, holds {}", Self::MAX_ITEMS, items.len())))
    }
}

/// The outcome of an attempt, as its worker reports it.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The handler succeeded.
    Complete {
        /// The result, stored with the job.
        result: Option<Json>,
    },
    /// The handler failed.
    Fail {
        /// The error.
        error: String,
        /// Whether the job may be retried.
        retryable: bool,
        /// The delay before the next attempt, instead of the job's own back-off.
        retry_after: Option<Duration>,
    },
    /// Run the job again after this delay. Costs no attempt.
    Snooze(Duration),
    /// Release the job unfinished, for another worker to claim. Costs no attempt.
    Release,
    /// The handler stopped on a cancel request.
    Cancelled,
    /// The worker stopped the handler at the job's timeout.
    ///
    /// Has the same effect as [`time_out_attempts`](crate::CoordinationStore::time_out_attempts). If that sweep came
    /// first, the report is answered as a repeat.
    TimedOut,
}

impl Outcome {
    /// Success without a result.
    pub const DONE: Self = Self::Complete { result: None };

    /// A retryable failure.
    pub fn fail(error: impl Into<String>) -> Self {
        Self::Fail { error: error.into(), retryable: true, retry_after: None }
    }

    /// Validates the limits.
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

/// Why one report of a call was refused. Nothing of it was written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FinishError {
    /// The token no longer owns its job.
    #[error("the lease is lost")]
    LeaseLost,
    /// The outcome is invalid.
    #[error("{0}")]
    Invalid(FieldError),
}

/// An update from a running job. `None` keeps the previous value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgressUpdate {
    /// The progress.
    pub progress: Option<Progress>,
    /// The checkpoint for the next attempt.
    pub checkpoint: Option<Json>,
}

impl ProgressUpdate {
    /// The greatest length of a progress message, in bytes.
    pub const MAX_MESSAGE: usize = 1_024;

    /// Validates the limits.
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
