//! The errors of handlers, and the outcome that each requests.

use std::{error::Error, fmt, time::Duration};

use orchestrix_store::Outcome;

/// What a handler returns.
pub type JobResult<T = ()> = Result<T, JobError>;

type Cause = Box<dyn Error + Send + Sync>;

/// Why an attempt did not complete its job. `?` converts any error into a retryable one.
///
/// ```
/// use std::time::Duration;
/// use orchestrix_worker::{JobError, JobResult, ResultExt};
///
/// fn charge(card: &str, amount: &str) -> JobResult<u32> {
///     let amount: u32 = amount.parse().fatal()?; // a retry would fail again
///     if card.is_empty() {
///         return Err(JobError::fatal("there is no card"));
///     }
///     let text = std::fs::read_to_string("/proc/loadavg")?; // any error: retried
///     if text.is_empty() {
///         return Err(JobError::snooze(Duration::from_secs(60))); // later, costs no attempt
///     }
///     Ok(amount)
/// }
/// ```
pub struct JobError {
    kind: Kind,
    cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Retry(Option<Duration>),
    Fatal,
    Snooze(Duration),
    Cancel,
}

impl JobError {
    /// A retryable failure. The job is retried after its back-off.
    pub fn new(cause: impl Into<Cause>) -> Self {
        Self { kind: Kind::Retry(None), cause: cause.into() }
    }

    /// A permanent failure. The job becomes dead, and only an operator can retry it.
    pub fn fatal(cause: impl Into<Cause>) -> Self {
        Self { kind: Kind::Fatal, cause: cause.into() }
    }

    /// A retryable failure with its own delay instead of the job's back-off.
    pub fn retry_after(delay: Duration, cause: impl Into<Cause>) -> Self {
        Self { kind: Kind::Retry(Some(delay)), cause: cause.into() }
    }

    /// Postpones the job by `delay`. Costs no attempt.
    pub fn snooze(delay: Duration) -> Self {
        Self { kind: Kind::Snooze(delay), cause: "snoozed".into() }
    }

    /// Cancels the job.
    pub fn cancel() -> Self {
        Self { kind: Kind::Cancel, cause: "cancelled by its handler".into() }
    }

    /// Whether the failure is permanent.
    pub fn is_fatal(&self) -> bool {
        self.kind == Kind::Fatal
    }

    /// Whether it is a retryable failure without its own delay.
    pub(crate) fn is_plain(&self) -> bool {
        self.kind == Kind::Retry(None)
    }

    pub(crate) fn outcome(&self) -> Outcome {
        let fail = |retryable, retry_after| Outcome::Fail { error: self.to_string(), retryable, retry_after };
        match self.kind {
            Kind::Retry(delay) => fail(true, delay),
            Kind::Fatal => fail(false, None),
            Kind::Snooze(delay) => Outcome::Snooze(delay),
            Kind::Cancel => Outcome::Cancelled,
        }
    }
}

// The error and all its sources in one line, for operators.
impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        let mut cause = self.cause.source();
        while let Some(deeper) = cause {
            write!(f, ": {deeper}")?;
            cause = deeper.source();
        }
        Ok(())
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind)
    }
}

impl<E: Into<Cause>> From<E> for JobError {
    fn from(cause: E) -> Self {
        Self::new(cause)
    }
}

/// Converts the error of any `Result` into a [`JobError`] of a given kind.
pub trait ResultExt<T> {
    /// Makes the failure permanent: the job becomes dead.
    fn fatal(self) -> JobResult<T>;

    /// Retries the job after `delay`.
    fn retry_after(self, delay: Duration) -> JobResult<T>;
}

impl<T, E: Into<JobError>> ResultExt<T> for Result<T, E> {
    fn fatal(self) -> JobResult<T> {
        self.map_err(|error| JobError { kind: Kind::Fatal, ..error.into() })
    }

    fn retry_after(self, delay: Duration) -> JobResult<T> {
        self.map_err(|error| JobError { kind: Kind::Retry(Some(delay)), ..error.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read() -> JobResult<String> {
        Ok(std::fs::read_to_string("/nowhere")?)
    }

    fn from_anyhow() -> JobResult {
        Err(anyhow::anyhow!("the disk").context("saving"))?;
        Ok(())
    }

    #[test]
    fn any_error_is_retryable_and_lists_its_sources() {
        assert!(matches!(read().unwrap_err().outcome(), Outcome::Fail { retryable: true, retry_after: None, .. }));
        assert_eq!(from_anyhow().unwrap_err().to_string(), "saving: the disk");
    }

    #[test]
    fn each_kind_of_error_maps_to_its_outcome() {
        let delay = Duration::from_secs(7);
        assert!(matches!(read().fatal().unwrap_err().outcome(), Outcome::Fail { retryable: false, .. }));
        let after = read().retry_after(delay).unwrap_err().outcome();
        assert!(matches!(after, Outcome::Fail { retryable: true, retry_after: Some(d), .. } if d == delay));
        assert_eq!(JobError::snooze(delay).outcome(), Outcome::Snooze(delay));
        assert_eq!(JobError::cancel().outcome(), Outcome::Cancelled);
        assert!(JobError::fatal("x").is_fatal());
    }
}
