//! Attempts that ran over their time are ended.

use async_trait::async_trait;
use orchestrix_store::Result;

use super::swept;
use crate::service::{Leader, Service, Step, When};

/// Jobs of one step.
const BATCH: usize = 1_000;

pub(super) struct TimeOut;

#[async_trait]
impl Service for TimeOut {
    fn name(&self) -> &'static str {
        "time_out"
    }

    fn when(&self) -> When {
        When::SweepTimes(|agenda| agenda.time_out)
    }

    async fn step(&self, leader: &Leader<'_>) -> Result<Step> {
        Ok(swept(leader.store.time_out_attempts(leader.fence, BATCH).await?, BATCH))
    }
}
