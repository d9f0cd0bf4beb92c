//! Workers as the store knows them.

use std::{fmt, str::FromStr, time::Duration};

use orchestrix_core::{FieldError, Instance, JobType, Timestamp, WorkerName};

use crate::{Queues, clock::whole_millis};

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
    /// Which start of it this is; `None` if it does not say. What the same start says again leaves alone what it was told to do.
    pub instance: Option<Instance>,
    /// After how long a silence it counts as dead; `None` leaves it as it was, [`WorkerInfo::DEAD_AFTER`] to begin with.
    pub dead_after: Option<Duration>,
}

impl WorkerInfo {
    /// How long a worker may be silent that does not say otherwise: three heartbeats of the usual length.
    pub const DEAD_AFTER: Duration = Duration::from_secs(30);

    /// The longest that any may be silent.
    pub const MAX_DEAD_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);

    /// A worker that takes anything, one job at a time, and says nothing more of itself.
    pub const fn any(name: WorkerName) -> Self {
        Self { name, queues: Queues::All, job_types: None, concurrency: 1, instance: None, dead_after: None }
    }

    /// How long a worker that shows itself so often may be silent: three times as long, and no less than usual.
    pub fn dead_after(heartbeat: Duration) -> Duration {
        Self::DEAD_AFTER.max(heartbeat.saturating_mul(3))
    }

    /// Whether one that says it is this start of it may speak for it: only another that is named may not.
    pub fn is_of(&self, instance: Option<&Instance>) -> bool {
        self.instance.as_ref().zip(instance).is_none_or(|(own, other)| own == other)
    }

    /// How long it may be silent, as stores keep it.
    pub fn silence(&self) -> Option<Duration> {
        self.dead_after.map(|silence| whole_millis(silence.min(Self::MAX_DEAD_AFTER)))
    }
}

/// What a worker shows with a sign of life.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presence {
    /// How many more jobs it could run; `None` leaves what it last said.
    pub free_slots: Option<u32>,
    /// Whether it takes nothing new any more, of its own accord: that counts as if it had been told to drain.
    pub draining: bool,
    /// Which start of it this is, if it says. One whose name another has taken since changes nothing of that one's, and is told to go on.
    pub instance: Option<Instance>,
}

impl Presence {
    /// Of one that works and could run so many more jobs.
    pub const fn free(slots: u32) -> Self {
        Self { free_slots: Some(slots), draining: false, instance: None }
    }
}

/// What a worker should do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Directive {
    /// Go on.
    #[default]
    Run,
    /// Take nothing new, and end when what runs is done.
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
    /// How long ago that was when this was read, by the store's clock.
    pub seen_ago: Duration,
}

impl WorkerStatus {
    /// How long it may be silent.
    pub fn dead_after(&self) -> Duration {
        self.info.dead_after.unwrap_or(WorkerInfo::DEAD_AFTER)
    }

    /// Whether it was heard of query, by its own measure and the store's clock.
    pub fn is_live(&self) -> bool {
        self.seen_ago <= self.dead_after()
    }
}
