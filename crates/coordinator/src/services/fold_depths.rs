//! Folds appended changes of queue depths into totals, so that reading depths stays cheap.

use std::time::Duration;

use async_trait::async_trait;
use orchestrix_store::Result;

use super::PAUSE_BETWEEN_FULL_STEPS;
use crate::{
    jitter::jittered,
    service::{LeaderContext, Service, StepResult, Trigger},
};

/// The maximum number of changes in one step.
const BATCH: usize = 1_000;
/// The pause after a step that folded changes.
const BUSY_PAUSE: Duration = Duration::from_secs(1);
/// The pause after a step that found none.
const IDLE_PAUSE: Duration = Duration::from_secs(5);

pub(super) struct FoldDepths;

#[async_trait]
impl Service for FoldDepths {
    fn name(&self) -> &'static str {
        "fold_depths"
    }

    fn trigger(&self) -> Trigger {
        Trigger::Periodic
    }

    async fn step(&self, leader: &LeaderContext<'_>) -> Result<StepResult> {
        let folded = leader.store.fold_depths(BATCH).await?;
        let next_in = match folded {
            0 => jittered(IDLE_PAUSE),
            BATCH.. => PAUSE_BETWEEN_FULL_STEPS,
            _ => jittered(BUSY_PAUSE),
        };
        Ok(StepResult { affected: folded, next_in: Some(next_in) })
    }
}
