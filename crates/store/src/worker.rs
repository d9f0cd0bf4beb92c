//! Workers as the store knows them.

use std::{fmt, str::FromStr};

use orchestrix_core::{FieldError, JobType, Timestamp, WorkerName};

use crate::Queues;

/// What a worker says of itself when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerInfo {
    /// Its name.
    pub name: WorkerName,
    /// What it serves.
    pub queues: Queues,
    /// The types it knows; `None` takes any.
    pub job_types: Option<Vec<JobType>>,
    /// How many jobs it runs at once.
    pub concurrency: u32,
}

/// What a worker should do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Directive {
    /// Go on.
    #[default]
    Run,
    /// Take nothing new, finish what runs.
    Drain,
    /// Stop at once.
    Stop,
}

impl Directive {
    /// The directive as APIs spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Drain => "drain",
            Self::Stop => "stop",
        }
    }
}

impl fmt::Display for Directive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Directive {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        [Self::Run, Self::Drain, Self::Stop]
            .into_iter()
            .find(|directive| directive.as_str() == text)
            .ok_or_else(|| FieldError::new("directive", "must be run, drain or stop"))
    }
}

/// A worker as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerStatus {
    /// What it said of itself.
    pub info: WorkerInfo,
    /// What it should do.
    pub directive: Directive,
    /// How many more jobs it could run, as it last said.
    pub free_slots: u32,
    /// When it registered.
    pub started_at: Timestamp,
    /// When it last showed that it lives.
    pub last_seen_at: Timestamp,
}
