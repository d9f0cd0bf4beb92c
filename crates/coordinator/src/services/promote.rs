//! Jobs whose time has come become claimable.

use async_trait::async_trait;
use orchestrix_store::Result;

use super::swept;
use crate::service::{Leader, Service, Step, When};

/// Jobs of one step.
const BATCH: usize = 2_000;

pub(super) struct Promote;

#[async_trait]
impl Service for Promote {
    fn name(&self) -> &'static str {
        "promote"
    }

    fn when(&self) -> When {
        When::SweepTimes(|agenda| agenda.promote)
    }

    async fn step(&self, leader: &Leader<'_>) -> Result<Step> {
        Ok(swept(leader.store.promote_jobs(leader.fence, BATCH).await?, BATCH))
    }
}
