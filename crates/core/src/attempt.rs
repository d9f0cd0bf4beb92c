//! How one attempt at a job ended.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{FieldError, JobState, Timestamp, WorkerName};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// It did its work.
    Completed,
    /// It reported an error.
    Failed,
    /// It ran over its time.
    TimedOut,
    /// Its lease expired.
    Lost,
    /// It stopped because somebody asked.
    Cancelled,
    /// It was handed back; costs no attempt.
    Released,
    /// It asked to come back later; costs no attempt.
    Snoozed,
}

impl AttemptOutcome {
    /// All outcomes.
    pub const ALL: [Self; 7] =
        [Self::Completed, Self::Failed, Self::TimedOut, Self::Lost, Self::Cancelled, Self::Released, Self::Snoozed];

    /// Whether it uses up one of the job's attempts.
    pub const fn costs_an_attempt(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::TimedOut | Self::Lost | Self::Cancelled => true,
            Self::Released | Self::Snoozed => false,
        }
    }

    /// The outcome as stores and APIs spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Lost => "lost",
            Self::Cancelled => "cancelled",
            Self::Released => "released",
            Self::Snoozed => "snoozed",
        }
    }
}

impl fmt::Display for AttemptOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for AttemptOutcome {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
            .ok_or_else(|| FieldError::new("outcome", "is no outcome of an attempt"))
    }
}

/// One attempt that has ended. Jobs keep their latest [`AttemptRecord::KEPT`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Which attempt it was, from 1. Attempts that cost nothing share their number with the next.
    pub attempt: u16,
    /// The lease it ran under.
    pub lease: i32,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// Where that left the job.
    pub led_to: JobState,
    /// Who ran it.
    pub worker: Option<WorkerName>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// What went wrong.
    pub error: Option<String>,
}

impl AttemptRecord {
    /// How many a job keeps; older ones give way, so that a job that snoozes for ever stays small.
    pub const KEPT: usize = 100;
    /// The longest error text kept, in characters.
    pub const MAX_ERROR: usize = 8_192;

    /// Makes any text storable: NUL, which PostgreSQL's text cannot hold, is replaced, and length is cut.
    pub fn error_text(text: &str) -> String {
        text.chars().take(Self::MAX_ERROR).map(|c| if c == '\0' { char::REPLACEMENT_CHARACTER } else { c }).collect()
    }
}
