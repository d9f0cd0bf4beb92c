//! Removes the registrations of workers and nodes that stopped sending heartbeats. Their leases expire on their own.

use async_trait::async_trait;
use orchestrix_store::Result;

use super::PAUSE_BETWEEN_FULL_STEPS;
use crate::{
    jitter::jittered,
    service::{LeaderContext, Service, StepResult, Trigger},
};

/// The maximum number of workers, and of nodes, in one step.
const BATCH: usize = 1_000;

pub(super) struct ForgetMembers;

#[async_trait]
impl Service for ForgetMembers {
    fn name(&self) -> &'static str {
        "forget_members"
    }

    fn trigger(&self) -> Trigger {
        Trigger::Periodic
    }

    async fn step(&self, leader: &LeaderContext<'_>) -> Result<StepResult> {
        let dead_after = leader.options.dead_after;
        let workers = leader.store.forget_workers(leader.fence, dead_after, BATCH).await?;
        let nodes = leader.store.forget_nodes(leader.fence, dead_after, BATCH).await?;
        let is_full = workers.max(nodes) >= BATCH;
        let next_in = if is_full { PAUSE_BETWEEN_FULL_STEPS } else { jittered(dead_after / 3) };
        Ok(StepResult { affected: workers + nodes, next_in: Some(next_in) })
    }
}
