//! Deletes finished jobs, logs and other history that is past its retention. Stores that partition history by day also
//! create the coming partitions here.

use std::time::Duration;

use async_trait::async_trait;
use orchestrix_store::Result;

use crate::{
    jitter::jittered,
    service::{LeaderContext, Service, StepResult, Trigger},
};

/// The maximum number of rows in one step.
const BATCH: usize = 1_000;
/// The pause while there is more to delete.
const BUSY_PAUSE: Duration = Duration::from_millis(100);
/// The pause while there is not.
const IDLE_PAUSE: Duration = Duration::from_secs(60);

pub(super) struct PruneHistory;

#[async_trait]
impl Service for PruneHistory {
    fn name(&self) -> &'static str {
        "prune_history"
    }

    fn trigger(&self) -> Trigger {
        Trigger::Periodic
    }

    async fn step(&self, leader: &LeaderContext<'_>) -> Result<StepResult> {
        let pruned = leader.store.prune_history(leader.fence, &leader.options.retention, BATCH).await?;
        let pause = if pruned.more { BUSY_PAUSE } else { IDLE_PAUSE };
        Ok(StepResult { affected: pruned.count, next_in: Some(jittered(pause)) })
    }
}
