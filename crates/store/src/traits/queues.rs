//! Queues: pause, resume, depth.

use async_trait::async_trait;
use orchestrix_core::{JobType, Queue};

use crate::{Page, PageRequest, QueueDepth, Result};

/// Pauses queues and reports what they hold.
#[async_trait]
pub trait QueueStore: Send + Sync {
    /// Stops claims from a queue. Running jobs continue.
    async fn pause_queue(&self, queue: &Queue) -> Result<()>;

    /// Allows claims from a queue again.
    async fn resume_queue(&self, queue: &Queue) -> Result<()>;

    /// Returns the paused queues.
    async fn paused_queues(&self) -> Result<Vec<Queue>>;

    /// Lists queues by name with their job counts by state and the age of their oldest claimable job.
    ///
    /// Only queues that hold jobs or are paused are listed. A page may hold fewer items than requested and still have
    /// a next one. The cost grows with the page, not with the backlog or the number of queues.
    async fn queue_depths(&self, page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>>;

    /// Returns the depth of one queue, or `None` if it holds nothing and is not paused.
    async fn queue_depth(&self, queue: &Queue) -> Result<Option<QueueDepth>>;

    /// Lists up to `limit` lanes, (queue, job type) pairs with pending jobs, by queue and then type. Includes paused
    /// queues.
    ///
    /// The cost grows with the lanes, not with the backlog.
    async fn claimable_lanes(&self, limit: usize) -> Result<Vec<(Queue, JobType)>>;
}
