//! Vacuums the tables that churn, sooner than the database would by itself.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use orchestrix_store::Result;

use crate::{
    jitter::jittered,
    service::{LeaderContext, Service, StepResult, Trigger},
};

/// The pause while tables churn.
const BUSY_PAUSE: Duration = Duration::from_millis(500);
/// The pause otherwise. A flow that begins leaves as many dead rows as fall into it.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// A pause is at least this many times as long as the step, so steps take at most a fifth of the time.
const PAUSE_PER_WORK: u32 = 4;

#[derive(Default)]
pub(super) struct VacuumTables {
    /// Whether the step before cleaned a table. A step in a steady flow may come just before the database counts the
    /// next dead rows.
    cleaned_before: AtomicBool,
}

#[async_trait]
impl Service for VacuumTables {
    fn name(&self) -> &'static str {
        "vacuum_tables"
    }

    fn trigger(&self) -> Trigger {
        Trigger::Periodic
    }

    async fn step(&self, leader: &LeaderContext<'_>) -> Result<StepResult> {
        let begun = Instant::now();
        let cleaned = leader.store.vacuum_tables().await?;
        let cleaned_before = self.cleaned_before.swap(cleaned > 0, Ordering::Relaxed);
        let pause = if cleaned > 0 || cleaned_before { BUSY_PAUSE } else { IDLE_PAUSE };
        let next_in = jittered(pause).max(begun.elapsed() * PAUSE_PER_WORK);
        Ok(StepResult { affected: cleaned, next_in: Some(next_in) })
    }
}
