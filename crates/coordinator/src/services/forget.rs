//! Workers and nodes that have been silent for too long are no longer listed. Their leases run out by themselves.

use async_trait::async_trait;
use orchestrix_store::Result;

use super::BREATH;
use crate::{
    pace::jittered,
    service::{Leader, Service, Step, When},
};

/// Workers and nodes of one step.
const BATCH: usize = 1_000;

pub(super) struct Forget;

#[async_trait]
impl Service for Forget {
    fn name(&self) -> &'static str {
        "forget"
    }

    fn when(&self) -> When {
        When::Period
    }

    async fn step(&self, leader: &Leader<'_>) -> Result<Step> {
        let silence = leader.options.dead_after;
        let workers = leader.store.forget_workers(leader.fence, silence, BATCH).await?;
        let nodes = leader.store.forget_nodes(leader.fence, silence, BATCH).await?;
        let full = workers.max(nodes) >= BATCH;
        let next = if full { BREATH } else { jittered(silence / 3) };
        Ok(Step { moved: workers + nodes, next: Some(next) })
    }
}
