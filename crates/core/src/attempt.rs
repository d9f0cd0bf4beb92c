//! How one attempt at a job ended.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{FieldError, JobState, Timestamp, WorkerName};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// The handler succeeded.
    Completed,
    /// The handler reported an error.
    Failed,
    /// It exceeded the job's timeout.
    TimedOut,
    /// Its lease expired: the worker stopped sending heartbeats.
    Lost,
    /// It stopped on a cancel request.
    Cancelled,
    /// The worker released the job unfinished. Costs no attempt.
    Released,
    /// The handler asked to run again later. Costs no attempt.
    Snoozed,
}

impl AttemptOutcome {
    /// All outcomes.
    pub const ALL: [Self; 7] =
        [Self::Completed, Self::Failed, Self::TimedOut, Self::Lost, Self::Cancelled, Self::Released, Self::Snoozed];

    /// Whether it counts against the job's attempt budget.
    pub const fn costs_an_attempt(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::TimedOut | Self::Lost | Self::Cancelled => true,
            Self::Released | Self::Snoozed => false,
        }
    }

    /// The name that stores and APIs use.
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
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text).ok_or_else(|| {
            FieldError::new("outcome", format!("must be one of {}", Self::ALL.map(Self::as_str).join(", ")))
        })
    }
}

/// One ended attempt. A job keeps its latest [`AttemptRecord::KEPT`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// The number of the attempt, from 1. An attempt that costs nothing shares its number with the next one.
    pub attempt: u16,
    /// The counter of the lease that it ran under.
    pub lease: i32,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// The state of the job afterwards.
    pub led_to: JobState,
    /// The worker that ran it.
    pub worker: Option<WorkerName>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The error that the worker reported.
    pub error: Option<String>,
}

impl AttemptRecord {
    /// How many attempts a job keeps. Older ones are dropped, so that a job that snoozes for ever stays small.
    pub const KEPT: usize = 100;
    /// The longest stored error, in characters.
    pub const MAX_ERROR: usize = 8_192;

    /// Makes an error storable: truncates it and replaces NUL, which PostgreSQL's `text` cannot hold.
    pub fn error_text(text: &str) -> String {
        text.chars().take(Self::MAX_ERROR).map(|c| if c == '\0' { char::REPLACEMENT_CHARACTER } else { c }).collect()
    }
}
