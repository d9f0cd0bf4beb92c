//! Log lines of jobs.

use std::{fmt, str::FromStr};

use orchestrix_core::{FieldError, Timestamp};

/// The level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Every step.
    Trace,
    /// Details for debugging.
    Debug,
    /// What happened.
    Info,
    /// What deserves attention.
    Warn,
    /// What went wrong.
    Error,
}

impl LogLevel {
    /// All levels.
    pub const ALL: [Self; 5] = [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error];

    /// The name that APIs use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LogLevel {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        Self::ALL
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or_else(|| FieldError::new("level", "must be trace, debug, info, warn or error"))
    }
}

/// A line that a worker sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When the worker wrote it; `None` for the store's time.
    pub at: Option<Timestamp>,
    /// The level.
    pub level: LogLevel,
    /// The message.
    pub message: String,
}

impl LogLine {
    /// The most lines per call.
    pub const MAX_LINES: usize = 1_000;
    /// The greatest length of a message, in bytes.
    pub const MAX_MESSAGE: usize = 16 * 1_024;

    /// Validates the lines of a call.
    pub fn validate(lines: &[Self]) -> Result<(), FieldError> {
        if lines.len() > Self::MAX_LINES {
            return Err(FieldError::new(
                "lines",
                format!("may hold at most {}, holds {}", Self::MAX_LINES, lines.len()),
            ));
        }
        match lines.iter().position(|line| line.message.len() > Self::MAX_MESSAGE || line.message.contains('\0')) {
            Some(i) => Err(FieldError::new(
                format!("lines[{i}].message"),
                format!("must have at most {} bytes and no NUL", Self::MAX_MESSAGE),
            )),
            None => Ok(()),
        }
    }
}

/// A stored line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// The sequence number within the job's log, which is also a page cursor.
    pub seq: i64,
    /// When it was written.
    pub at: Timestamp,
    /// The level.
    pub level: LogLevel,
    /// The number of the attempt that wrote it.
    pub attempt: u16,
    /// The message.
    pub message: String,
}
