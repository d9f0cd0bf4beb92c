//! Registered workers.

use std::{fmt, str::FromStr, time::Duration};

use orchestrix_core::{FieldError, Instance, JobType, Timestamp, WorkerName};

use crate::{Queues, clock::whole_millis};

/// A worker as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerInfo {
    /// The name.
    pub name: WorkerName,
    /// The queues that it serves.
    pub queues: Queues,
    /// The job types that it has handlers for; `None` for any.
    pub job_types: Option<Vec<JobType>>,
    /// The most jobs that it runs concurrently.
    pub concurrency: u32,
    /// The id of this start of the worker, if it sends one. Registering again with the same id keeps the directive.
    pub instance: Option<Instance>,
    /// After how long without a heartbeat it counts as dead. `None` keeps the previous value, initially
    /// [`WorkerInfo::DEAD_AFTER`].
    pub dead_after: Option<Duration>,
}

impl WorkerInfo {
    /// The default for [`dead_after`](WorkerInfo::dead_after): three default heartbeat intervals.
    pub const DEAD_AFTER: Duration = Duration::from_secs(30);

    /// The longest time without a heartbeat.
    pub const MAX_DEAD_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);

    /// A worker that runs any job, one at a time.
    pub const fn any(name: WorkerName) -> Self {
        Self { name, queues: Queues::All, job_types: None, concurrency: 1, instance: None, dead_after: None }
    }

    /// When a worker with this heartbeat interval counts as dead: after three intervals, but not before the default.
    pub fn dead_after(heartbeat: Duration) -> Duration {
        Self::DEAD_AFTER.max(heartbeat.saturating_mul(3))
    }

    /// Whether `instance` may act for this worker. Only a different instance id may not.
    pub fn is_instance(&self, instance: Option<&Instance>) -> bool {
        self.instance.as_ref().zip(instance).is_none_or(|(own, other)| own == other)
    }

    /// [`dead_after`](WorkerInfo::dead_after) as stores keep it.
    pub fn silence(&self) -> Option<Duration> {
        self.dead_after.map(|silence| whole_millis(silence.min(Self::MAX_DEAD_AFTER)))
    }
}

/// What a worker reports with a heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presence {
    /// Its free slots; `None` keeps the previous value.
    pub free_slots: Option<u32>,
    /// Whether it drains on its own. That counts like a drain directive.
    pub draining: bool,
    /// The id of this start of the worker, if it sends one. If another instance has taken its name since, the
    /// heartbeat changes nothing and returns [`Directive::Run`].
    pub instance: Option<Instance>,
}

impl Presence {
    /// The heartbeat of a running worker with `slots` free slots.
    pub const fn free(slots: u32) -> Self {
        Self { free_slots: Some(slots), draining: false, instance: None }
    }
}

/// What the operator wants a worker to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Directive {
    /// Claim and run jobs.
    #[default]
    Run,
    /// Claim nothing new, and exit when the running jobs have finished.
    Drain,
    /// Stop at once.
    Stop,
}

impl Directive {
    /// The name that APIs use.
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

/// A registered worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Its description of itself.
    pub info: WorkerInfo,
    /// The directive.
    pub directive: Directive,
    /// The free slots that it last reported.
    pub free_slots: u32,
    /// When it registered.
    pub started_at: Timestamp,
    /// When it last sent a heartbeat.
    pub last_seen_at: Timestamp,
    /// How long ago that was, by the store's clock.
    pub seen_ago: Duration,
}

impl WorkerStatus {
    /// After how long without a heartbeat it counts as dead.
    pub fn dead_after(&self) -> Duration {
        self.info.dead_after.unwrap_or(WorkerInfo::DEAD_AFTER)
    }

    /// Whether its last heartbeat is recent enough.
    pub fn is_live(&self) -> bool {
        self.seen_ago <= self.dead_after()
    }
}
