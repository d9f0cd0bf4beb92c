//! Jobs that did not start in time are cancelled.

use async_trait::async_trait;
use orchestrix_store::Result;

use super::swept;
use crate::service::{Leader, Service, Step, When};

/// Jobs of one step.
const BATCH: usize = 1_000;

pub(super) struct Expire;

#[async_trait]
impl Service for Expire {
    fn name(&self) -> &'static str {
        "expire"
    }

    fn when(&self) -> When {
        When::SweepTimes(|agenda| agenda.expire)
    }

    async fn step(&self, leader: &Leader<'_>) -> Result<Step> {
        Ok(swept(leader.store.expire_jobs(leader.fence, BATCH).await?, BATCH))
    }
}
