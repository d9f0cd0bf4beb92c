//! Fires due schedules: enqueues the job of each occurrence.

use async_trait::async_trait;
use orchestrix_store::Result;

use super::after_sweep;
use crate::service::{LeaderContext, Service, StepResult, Trigger};

/// The maximum number of schedules in one step.
const BATCH: usize = 500;

pub(super) struct FireSchedules;

#[async_trait]
impl Service for FireSchedules {
    fn name(&self) -> &'static str {
        "fire_schedules"
    }

    fn trigger(&self) -> Trigger {
        Trigger::WhenDue(|times| times.fire)
    }

    async fn step(&self, leader: &LeaderContext<'_>) -> Result<StepResult> {
        Ok(after_sweep(leader.store.fire_schedules(leader.fence, BATCH).await?, BATCH))
    }
}
