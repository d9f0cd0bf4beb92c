//! What bounded sweeps are asked for and report.

use std::time::Duration;

use orchestrix_core::FieldError;

/// The most jobs one step of a sweep may touch.
pub const MAX_SWEEP: usize = 10_000;

/// Checks that a step touches something and at most `max`.
pub fn check_limit(limit: usize, max: usize) -> Result<(), FieldError> {
    if (1..=max).contains(&limit) {
        return Ok(());
    }
    Err(FieldError::new("limit", format!("must be from 1 to {max}, not {limit}")))
}

/// One step of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepResult {
    /// Jobs moved on. If it equals the limit, there may be more.
    pub count: usize,
    /// How long until the next job is due, by the store's clock; zero if one is due now. `None` when none waits.
    pub next_in: Option<Duration>,
}

/// How long finished jobs, logs and records are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Completed jobs.
    pub completed: Duration,
    /// Cancelled jobs.
    pub cancelled: Duration,
    /// Dead jobs, which wait for a person.
    pub dead: Duration,
    /// Log lines.
    pub logs: Duration,
    /// Lines of the ledgers of schedules, by their last nominal time or by when they were written, whichever is later.
    pub occurrences: Duration,
    /// Entries of the audit, by when they were begun.
    pub audit: Duration,
    /// Operations, by when they were over.
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

/// One step of pruning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Rows or partitions removed.
    pub count: usize,
    /// Whether another step would find more.
    pub more: bool,
}
