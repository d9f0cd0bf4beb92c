//! Ends attempts that exceed their job's timeout.

use async_trait::async_trait;
use orchestrix_store::Result;

use super::after_sweep;
use crate::service::{LeaderContext, Service, StepResult, Trigger};

/// The maximum number of jobs in one step.
const BATCH: usize = 1_000;

pub(super) struct TimeOutAttempts;

#[async_trait]
impl Service for TimeOutAttempts {
    fn name(&self) -> &'static str {
        "time_out_attempts"
    }

    fn trigger(&self) -> Trigger {
        Trigger::WhenDue(|times| times.time_out)
    }

    async fn step(&self, leader: &LeaderContext<'_>) -> Result<StepResult> {
        Ok(after_sweep(leader.store.time_out_attempts(leader.fence, BATCH).await?, BATCH))
    }
}
