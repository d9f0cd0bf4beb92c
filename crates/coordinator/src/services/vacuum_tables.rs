//! Vacuums the tables that churn, sooner than the database would by itself.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use orchestrix_store::Result;

use crate::{
    jitter::jittered,
    service::{LeaderContext, Service, StepResult, Trigger},
};

/// The pause between two steps, whether there was work or not: a flow that begins makes its tables as large as the dead
/// rows of the first pause, and they stay so large. A step without work reads a few counters.
const PAUSE: Duration = Duration::from_millis(500);
/// A pause is at least this many times as long as the step, so steps take at most a fifth of the time.
const PAUSE_PER_WORK: u32 = 4;

pub(super) struct VacuumTables;

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
        let pause = jittered(PAUSE).max(begun.elapsed() * PAUSE_PER_WORK);
        Ok(StepResult { affected: cleaned, next_in: Some(pause) })
    }
}
