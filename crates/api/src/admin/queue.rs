//! Queues: their depth and whether they are paused.

use std::collections::BTreeMap;

use orchestrix_core::{JobState, Queue};
use orchestrix_store::QueueDepth;
use serde::{Deserialize, Serialize};

use crate::{ObjectReader, RequestError, seconds::seconds};

/// A queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueView {
    /// The name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Queue,
    /// Whether the queue is paused.
    pub paused: bool,
    /// The number of unfinished jobs by state. States without jobs are omitted.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>))]
    pub counts: BTreeMap<JobState, u64>,
    /// How long the oldest claimable job has waited, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_seconds: Option<f64>,
}

impl QueueView {
    /// A queue without jobs.
    pub const fn empty(name: Queue) -> Self {
        Self { name, paused: false, counts: BTreeMap::new(), oldest_seconds: None }
    }
}

impl From<QueueDepth> for QueueView {
    fn from(depth: QueueDepth) -> Self {
        Self {
            name: depth.queue,
            paused: depth.paused,
            counts: depth.counts,
            oldest_seconds: depth.oldest.map(seconds),
        }
    }
}

/// Pauses or resumes a queue.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueRequest {
    /// Whether the queue is paused. Workers claim no jobs from a paused queue; running jobs continue.
    pub paused: bool,
}

/// Parses a [`QueueRequest`].
pub fn parse_queue(text: &str) -> Result<QueueRequest, RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let paused: Option<bool> = object.get("paused", "true or false");
    let paused = object.required("paused", paused);
    object.finish()?;
    Ok(QueueRequest { paused: paused.unwrap_or_default() })
}
