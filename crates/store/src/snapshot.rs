//! A snapshot of a store for diagnostics: leader, workers, queues.

use orchestrix_core::{JobType, Queue, Timestamp};

use crate::{Epoch, NodeStatus, QueueDepth, WorkerStatus};

/// A snapshot of a store for diagnostics. Reading it changes nothing, so depths may be slightly out of date.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreSnapshot {
    /// The store's time.
    pub now: Timestamp,
    /// The current epoch.
    pub epoch: Epoch,
    /// The nodes, and which of them leads.
    pub nodes: Vec<NodeStatus>,
    /// The workers.
    pub workers: Vec<WorkerStatus>,
    /// The depth of every queue.
    pub queues: Vec<QueueDepth>,
    /// The lanes with claimable jobs.
    pub lanes: Vec<(Queue, JobType)>,
    /// The number of dead jobs, counted up to [`StoreSnapshot::MAX_DEAD`].
    pub dead: u64,
}

impl StoreSnapshot {
    /// The most rows read of each kind.
    pub const MAX_ROWS: usize = 1_000;
    /// The most dead jobs counted.
    pub const MAX_DEAD: u64 = 100_000;
}
