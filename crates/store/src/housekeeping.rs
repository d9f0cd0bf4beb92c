//! Limits and results of sweeps.

use std::time::Duration;

use orchestrix_core::FieldError;

/// The most jobs per step of a sweep.
pub const MAX_SWEEP: usize = 10_000;

/// Validates that `limit` is from 1 to `max`.
pub fn check_limit(limit: usize, max: usize) -> Result<(), FieldError> {
    if (1..=max).contains(&limit) {
        return Ok(());
    }
    Err(FieldError::new("limit", format!("must be from 1 to {max}, not {limit}")))
}

/// The result of one step of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepResult {
    /// The number of jobs changed. If it equals the limit, there may be more.
    pub count: usize,
    /// How long until the next job is due, by the store's clock: zero if one is due now, `None` if none waits.
    pub next_in: Option<Duration>,
}

/// How long finished jobs, logs and records are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Completed jobs.
    pub completed: Duration,
    /// Cancelled jobs.
    pub cancelled: Duration,
    /// Dead jobs.
    pub dead: Duration,
    /// Log lines.
    pub logs: Duration,
    /// Occurrences of schedules, from their last nominal time or from when they were written, whichever is later.
    pub occurrences: Duration,
    /// Audit entries, from when they began.
    pub audit: Duration,
    /// Bulk operations, from when they finished.
    pub operations: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        let days = |n: u64| Duration::from_secs(n * 24 * 3600);
        Self {
            completed: days(7),
            cancelled: days(7),
            dead: days(90),
            logs: days(7),
            occurrences: days(30),
            audit: days(365),
            operations: days(30),
        }
    }
}

/// The result of one step of pruning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The number of rows or partitions deleted.
    pub count: usize,
    /// Whether another step would find more.
    pub more: bool,
}
