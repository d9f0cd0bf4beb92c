//! Jobs whose parents finished and were not told by whoever finished them, because it died or they were too many.

use async_trait::async_trait;
use orchestrix_store::Result;

use super::swept;
use crate::service::{Leader, Service, Step, When};

/// Jobs of one step.
const BATCH: usize = 1_000;

pub(super) struct Unblock;

#[async_trait]
impl Service for Unblock {
    fn name(&self) -> &'static str {
        "unblock"
    }

    fn when(&self) -> When {
        When::SweepTimes(|agenda| agenda.unblock)
    }

    async fn step(&self, leader: &Leader<'_>) -> Result<Step> {
        Ok(swept(leader.store.unblock_jobs(leader.fence, BATCH).await?, BATCH))
    }
}
