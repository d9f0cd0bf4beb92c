//! Changes of depth that were appended are folded, so that reading depths stays cheap.

use std::time::Duration;

use async_trait::async_trait;
use orchestrix_store::Result;

use super::BREATH;
use crate::{
    pace::jittered,
    service::{Leader, Service, Step, When},
};

/// Changes of one step.
const BATCH: usize = 10_000;
/// Between steps while there are changes, and while there are none.
const BUSY: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(5);

pub(super) struct Fold;

#[async_trait]
impl Service for Fold {
    fn name(&self) -> &'static str {
        "fold"
    }

    fn when(&self) -> When {
        When::Period
    }

    async fn step(&self, leader: &Leader<'_>) -> Result<Step> {
        let moved = leader.store.fold_depths(BATCH).await?;
        let next = match moved {
            0 => jittered(IDLE),
            BATCH.. => BREATH,
            _ => jittered(BUSY),
        };
        Ok(Step { moved, next: Some(next) })
    }
}
