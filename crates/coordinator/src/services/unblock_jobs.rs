//! Unblocks jobs whose dependencies have finished.
//!
//! The process that finishes a job usually unblocks its dependents. This service does it if that process died in
//! between, or if a sweep of the leader finished a job with too many dependents for one transaction.

use async_trait::async_trait;
use orchestrix_store::Result;

use super::after_sweep;
use crate::service::{LeaderContext, Service, StepResult, Trigger};

/// The maximum number of jobs in one step.
const BATCH: usize = 1_000;

pub(super) struct UnblockJobs;

#[async_trait]
impl Service for UnblockJobs {
    fn name(&self) -> &'static str {
        "unblock_jobs"
    }

    fn trigger(&self) -> Trigger {
        Trigger::WhenDue(|times| times.unblock)
    }

    async fn step(&self, leader: &LeaderContext<'_>) -> Result<StepResult> {
        Ok(after_sweep(leader.store.unblock_jobs(leader.fence, BATCH).await?, BATCH))
    }
}
