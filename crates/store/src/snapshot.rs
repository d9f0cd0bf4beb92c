//! How things stand in a store: who leads, who works, what waits.

use orchestrix_core::{JobType, Queue, Timestamp};

use crate::{Epoch, NodeStatus, QueueDepth, WorkerStatus};

/// One look at a store, for whoever examines it. Gathered without changing anything, so depths may be a moment old.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreSnapshot {
    /// The store's own time.
    pub now: Timestamp,
    /// How often leadership has changed hands.
    pub epoch: Epoch,
    /// Who takes part in coordination, and which of them leads.
    pub nodes: Vec<NodeStatus>,
    /// Who works.
    pub workers: Vec<WorkerStatus>,
    /// What every queue holds.
    pub queues: Vec<QueueDepth>,
    /// Queues and types that have claimable jobs.
    pub lanes: Vec<(Queue, JobType)>,
    /// Jobs that failed for good; counted up to [`StoreSnapshot::MAX_DEAD`].
    pub dead: u64,
}

impl StoreSnapshot {
    /// The most rows of one kind that are read.
    pub const MAX_ROWS: usize = 1_000;
    /// How far dead jobs are counted.
    pub const MAX_DEAD: u64 = 100_000;
}
