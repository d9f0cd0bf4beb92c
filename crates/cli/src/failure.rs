//! What went wrong, in words that say what to do, and the exit code that goes with it. The only place that knows codes.

use std::io::{self, Write};

use orchestrix_core::{Event, IllegalTransition};
use orchestrix_store::StoreError;
use thiserror::Error;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome(u8);

impl Outcome {
    /// It did what it was asked to.
    pub(crate) const DONE: Self = Self(0);
    /// It found that something had failed.
    pub(crate) const FAILED: Self = Self(1);
    const USAGE: Self = Self(2);
    const NOT_FOUND: Self = Self(3);
    const CONFLICT: Self = Self(4);
    /// Whom it was to ask is not there.
    pub(crate) const UNREACHABLE: Self = Self(5);

    /// The exit code.
    pub(crate) const fn code(self) -> u8 {
        self.0
    }
}

/// What this program refuses by itself.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The request makes no sense.
    #[error("{0}")]
    Usage(String),
    /// It was not carried out.
    #[error("{0}")]
    Failed(String),
    /// The database is not there.
    #[error("{0}")]
    Unreachable(String),
}

/// Says on standard error what went wrong, and how to exit.
pub(crate) fn report(error: &anyhow::Error) -> Outcome {
    if is_broken_pipe(error) {
        // Whoever read has seen enough.
        return Outcome::DONE;
    }
    let mut text = format!("error: {}\n", words(error));
    if let Some(advice) = error.downcast_ref::<StoreError>().and_then(advice) {
        text += &format!("  {advice}\n");
    }
    say(&text);
    outcome(error)
}

/// Writes to standard error, which may be closed: then nobody wants to know.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn outcome(error: &anyhow::Error) -> Outcome {
    match error.downcast_ref::<Failure>() {
        Some(Failure::Usage(_)) => return Outcome::USAGE,
        Some(Failure::Failed(_)) => return Outcome::FAILED,
        Some(Failure::Unreachable(_)) => return Outcome::UNREACHABLE,
        None => {}
    }
    match error.downcast_ref::<StoreError>() {
        Some(StoreError::Invalid(_)) => Outcome::USAGE,
        Some(StoreError::JobNotFound(_) | StoreError::ScheduleNotFound(_)) => Outcome::NOT_FOUND,
        Some(
            StoreError::IdempotencyKeyReused { .. }
            | StoreError::IllegalTransition(_)
            | StoreError::LeaseLost
            | StoreError::Deposed { .. },
        ) => Outcome::CONFLICT,
        Some(StoreError::Unavailable(_)) => Outcome::UNREACHABLE,
        _ => Outcome::FAILED,
    }
}

fn words(error: &anyhow::Error) -> String {
    let mut parts = Vec::new();
    for cause in error.chain() {
        // A store's error says all that its causes do.
        if let Some(error) = cause.downcast_ref::<StoreError>() {
            parts.push(match error {
                StoreError::IllegalTransition(refused) => refusal(*refused),
                error => error.to_string(),
            });
            break;
        }
        parts.push(cause.to_string());
    }
    parts.join(": ")
}

fn refusal(refused: IllegalTransition) -> String {
    let from = refused.from;
    match refused.event {
        Event::Cancel => format!("it is {from} and can no longer be cancelled"),
        Event::Redrive => format!("it is {from}; only dead and cancelled jobs can be retried"),
        Event::Release(_) => format!("it is {from}; only held jobs can be released"),
        _ => refused.to_string(),
    }
}

fn advice(error: &StoreError) -> Option<String> {
    match error {
        StoreError::JobNotFound(_) => {
            Some("`orchestrix jobs list` shows what there is; finished jobs are forgotten after some days".into())
        }
        StoreError::ScheduleNotFound(_) => Some("`orchestrix schedules list` shows what there is".into()),
        StoreError::IdempotencyKeyReused { existing } => {
            Some(format!("choose another --idempotency-key, or look at that job: orchestrix jobs get {existing}"))
        }
        StoreError::Unavailable(_) => {
            Some("is the database up, and --database right? --connect-timeout waits longer for it".into())
        }
        _ => None,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
