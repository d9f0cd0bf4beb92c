//! Schedules that are due create their jobs.

use async_trait::async_trait;
use orchestrix_store::Result;

use super::swept;
use crate::service::{Leader, Service, Step, When};

/// Schedules of one step.
const BATCH: usize = 500;

pub(super) struct Fire;

#[async_trait]
impl Service for Fire {
    fn name(&self) -> &'static str {
        "fire"
    }

    fn when(&self) -> When {
        When::SweepTimes(|agenda| agenda.fire)
    }

    async fn step(&self, leader: &Leader<'_>) -> Result<Step> {
        Ok(swept(leader.store.fire_schedules(leader.fence, BATCH).await?, BATCH))
    }
}
