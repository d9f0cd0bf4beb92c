//! Reaps expired leases: the jobs of dead workers become claimable again.
//!
//! After the database was unavailable, workers first get one heartbeat interval to extend leases that expired
//! meanwhile.

use std::time::Duration;

use async_trait::async_trait;
use orchestrix_store::{Result, metrics};

use super::after_sweep;
use crate::service::{LeaderContext, Service, StepResult, Trigger};

/// The maximum number of leases in one step.
const BATCH: usize = 1_000;

pub(super) struct ReapLeases;

#[async_trait]
impl Service for ReapLeases {
    fn name(&self) -> &'static str {
        "reap_leases"
    }

    fn trigger(&self) -> Trigger {
        Trigger::WhenDue(|times| times.reap)
    }

    async fn step(&self, leader: &LeaderContext<'_>) -> Result<StepResult> {
        if let Some(wait) = remaining_grace(leader) {
            return Ok(StepResult { affected: 0, next_in: Some(wait) });
        }
        let reaped = leader.store.reap_leases(leader.fence, BATCH, leader.options.crash_loop_limit).await?;
        metrics::leases_lost(reaped.count);
        Ok(after_sweep(reaped, BATCH))
    }
}

/// How long workers still have after an outage, as seen by this node or reported by the database.
fn remaining_grace(leader: &LeaderContext<'_>) -> Option<Duration> {
    let available_for = leader.status.available_for()?;
    leader.options.heartbeat.checked_sub(available_for).filter(|wait| !wait.is_zero())
}
