//! [`QueueStore`] on SQLite.

use async_trait::async_trait;
use orchestrix_core::{JobType, Queue};
use orchestrix_store::{
    Page, PageRequest, QueueDepth, QueueStore, Result, housekeeping::check_limit, inspect::MAX_LANES,
};

use super::SqliteStore;
use crate::{lanes, queue};

#[async_trait]
impl QueueStore for SqliteStore {
    async fn pause_queue(&self, queue: &Queue) -> Result<()> {
        let queue = queue.clone();
        self.database().write(move |transaction| transaction.pause_queue(&queue)).await
    }

    async fn resume_queue(&self, queue: &Queue) -> Result<()> {
        let queue = queue.clone();
        self.database().write(move |transaction| transaction.resume_queue(&queue)).await
    }

    async fn paused_queues(&self) -> Result<Vec<Queue>> {
        self.database().read(|session| queue::list_paused(&session)).await
    }

    async fn queue_depths(&self, page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| queue::depths(&session, &page)).await
    }

    async fn queue_depth(&self, queue: &Queue) -> Result<Option<QueueDepth>> {
        let queue = queue.clone();
        self.database().read(move |session| queue::depth(&session, &queue)).await
    }

    async fn claimable_lanes(&self, limit: usize) -> Result<Vec<(Queue, JobType)>> {
        check_limit(limit, MAX_LANES)?;
        self.database().read(move |session| lanes::list(&session, limit)).await
    }
}
