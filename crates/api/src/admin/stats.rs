//! How the whole stands, in a few numbers.

use std::collections::BTreeMap;

use orchestrix_core::{JobState, NodeName};
use serde::{Deserialize, Serialize};

/// How the whole stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Stats {
    /// What waits and runs.
    pub queues: QueueStats,
    /// Who works.
    pub workers: WorkerStats,
    /// How many nodes take part in coordination; at most 1000 are counted.
    pub nodes: usize,
    /// Which of them leads; null while nobody does.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required))]
    pub leader: Option<NodeName>,
    /// How many operations on many jobs are under way.
    pub open_operations: usize,
}

/// What waits and runs, of the first thousand queues by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueStats {
    /// How many queues hold jobs or are paused.
    pub count: usize,
    /// Whether there are more, which are not counted.
    pub more: bool,
    /// How many are paused.
    pub paused: usize,
    /// Jobs by state; unfinished ones, and only states that have any.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>))]
    pub counts: BTreeMap<JobState, u64>,
    /// How long the oldest claimable job has waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_seconds: Option<f64>,
}

/// Workers by how they are, of the first ten thousand by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerStats {
    /// They take jobs.
    pub live: usize,
    /// They were told to take no more.
    pub draining: usize,
    /// They were told to stop.
    pub stopping: usize,
    /// They were not heard of lately.
    pub silent: usize,
}
