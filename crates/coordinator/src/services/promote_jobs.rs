//! Makes jobs claimable when their start time has come.

use async_trait::async_trait;
use orchestrix_store::Result;

use super::after_sweep;
use crate::service::{LeaderContext, Service, StepResult, Trigger};

/// The maximum number of jobs in one step.
const BATCH: usize = 2_000;

pub(super) struct PromoteJobs;

#[async_trait]
impl Service for PromoteJobs {
    fn name(&self) -> &'static str {
        "promote_jobs"
    }

    fn trigger(&self) -> Trigger {
        Trigger::WhenDue(|times| times.promote)
    }

    async fn step(&self, leader: &LeaderContext<'_>) -> Result<StepResult> {
        Ok(after_sweep(leader.store.promote_jobs(leader.fence, BATCH).await?, BATCH))
    }
}
