//! The lines a job writes while it runs.

use std::{fmt, str::FromStr};

use orchestrix_core::{FieldError, Timestamp};

/// How serious a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For whoever follows every step.
    Trace,
    /// For whoever looks for a fault.
    Debug,
    /// What happened.
    Info,
    /// What somebody should look at.
    Warn,
    /// What went wrong.
    Error,
}

impl LogLevel {
    /// All levels.
    pub const ALL: [Self; 5] = [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error];

    /// The level as APIs spell it.
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

/// A line as a worker sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When the worker wrote it; the store's time if it does not say.
    pub at: Option<Timestamp>,
    /// How serious it is.
    pub level: LogLevel,
    /// What it says.
    pub message: String,
}

impl LogLine {
    /// The most lines one call may add.
    pub const MAX_LINES: usize = 1_000;
    /// The longest message, in bytes.
    pub const MAX_MESSAGE: usize = 16 * 1_024;

    /// Checks the limits of a call.
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

/// A line as it is read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Grows along the log; where the next page begins.
    pub seq: i64,
    /// When it was written.
    pub at: Timestamp,
    /// How serious it is.
    pub level: LogLevel,
    /// Which attempt wrote it.
    pub attempt: u16,
    /// What it says.
    pub message: String,
}
