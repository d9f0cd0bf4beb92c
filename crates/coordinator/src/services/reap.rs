//! Leases that ran out are taken back.
//!
//! Not right after the database was away, though: holders that could not reach it get the time of one heartbeat first.

use std::time::Duration;

use async_trait::async_trait;
use orchestrix_store::{Result, metrics};

use super::swept;
use crate::service::{Leader, Service, Step, When};

/// Leases of one step.
const BATCH: usize = 1_000;

pub(super) struct Reap;

#[async_trait]
impl Service for Reap {
    fn name(&self) -> &'static str {
        "reap"
    }

    fn when(&self) -> When {
        When::SweepTimes(|agenda| agenda.reap)
    }

    async fn step(&self, leader: &Leader<'_>) -> Result<Step> {
        if let Some(wait) = grace(leader) {
            return Ok(Step { moved: 0, next: Some(wait) });
        }
        let reaped = leader.store.reap_leases(leader.fence, BATCH, leader.options.crash_loop).await?;
        metrics::leases_lost(reaped.count);
        Ok(swept(reaped, BATCH))
    }
}

// How long holders still have, by what this node saw and by what the database knows of itself.
fn grace(leader: &Leader<'_>) -> Option<Duration> {
    let since = leader.board.reachable_for()?;
    leader.options.heartbeat.checked_sub(since).filter(|wait| !wait.is_zero())
}
