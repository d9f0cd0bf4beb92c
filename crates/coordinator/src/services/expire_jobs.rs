//! Cancels jobs that did not start before they expired.

use async_trait::async_trait;
use orchestrix_store::Result;

use super::after_sweep;
use crate::service::{LeaderContext, Service, StepResult, Trigger};

/// The maximum number of jobs in one step.
const BATCH: usize = 1_000;

pub(super) struct ExpireJobs;

#[async_trait]
impl Service for ExpireJobs {
    fn name(&self) -> &'static str {
        "expire_jobs"
    }

    fn trigger(&self) -> Trigger {
        Trigger::WhenDue(|times| times.expire)
    }

    async fn step(&self, leader: &LeaderContext<'_>) -> Result<StepResult> {
        Ok(after_sweep(leader.store.expire_jobs(leader.fence, BATCH).await?, BATCH))
    }
}
