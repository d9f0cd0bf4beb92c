//! Statistics of the whole system.

use std::collections::BTreeMap;

use orchestrix_core::{JobState, NodeName};
use serde::{Deserialize, Serialize};

/// Statistics of the whole system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Stats {
    /// Statistics of the queues.
    pub queues: QueueStats,
    /// Statistics of the workers.
    pub workers: WorkerStats,
    /// The number of nodes. At most 1000 are counted.
    pub nodes: usize,
    /// The leader. `null` if there is none.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required))]
    pub leader: Option<NodeName>,
    /// The number of running bulk operations.
    pub open_operations: usize,
}

/// Statistics of the first 1000 queues by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueStats {
    /// The number of queues that have jobs or are paused.
    pub count: usize,
    /// Whether there are more queues, which are not counted.
    pub more: bool,
    /// The number of paused queues.
    pub paused: usize,
    /// The number of unfinished jobs by state. States without jobs are omitted.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>))]
    pub counts: BTreeMap<JobState, u64>,
    /// How long the oldest claimable job has waited, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_seconds: Option<f64>,
}

/// Statistics of the first 10,000 workers by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerStats {
    /// Live workers that claim jobs.
    pub live: usize,
    /// Live workers that are draining.
    pub draining: usize,
    /// Live workers that are stopping.
    pub stopping: usize,
    /// Workers without a recent heartbeat.
    pub silent: usize,
}
