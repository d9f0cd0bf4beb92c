//! Retention: what is past it goes, a bounded step at a time; stores that keep history by days get theirs made ahead.

use std::time::Duration;

use async_trait::async_trait;
use orchestrix_store::Result;

use crate::{
    pace::jittered,
    service::{Leader, Service, Step, When},
};

/// Rows of one step.
const BATCH: usize = 1_000;
/// Between steps while there is more to forget, and while there is not.
const BUSY: Duration = Duration::from_millis(100);
const IDLE: Duration = Duration::from_secs(60);

pub(super) struct Retain;

#[async_trait]
impl Service for Retain {
    fn name(&self) -> &'static str {
        "retain"
    }

    fn when(&self) -> When {
        When::Period
    }

    async fn step(&self, leader: &Leader<'_>) -> Result<Step> {
        let pruned = leader.store.prune_history(leader.fence, &leader.options.retention, BATCH).await?;
        Ok(Step { moved: pruned.count, next: Some(jittered(if pruned.more { BUSY } else { IDLE })) })
    }
}
