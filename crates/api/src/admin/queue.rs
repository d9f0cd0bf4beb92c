//! Queues: what they hold, and whether claims from them are stopped.

use std::collections::BTreeMap;

use orchestrix_core::{JobState, Queue};
use orchestrix_store::QueueDepth;
use serde::{Deserialize, Serialize};

use crate::{Object, job::Refusal, seconds::seconds};

/// A queue as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueView {
    /// What it is called.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Queue,
    /// Whether claims from it are stopped.
    pub paused: bool,
    /// Jobs by state; unfinished ones, and only states that have any.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u64>))]
    pub counts: BTreeMap<JobState, u64>,
    /// How long its oldest claimable job has waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_seconds: Option<f64>,
}

impl QueueView {
    /// A queue that nothing is known of.
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

/// What a queue should be.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueRequest {
    /// Whether claims from it are stopped. What runs goes on.
    pub paused: bool,
}

/// Reads a [`QueueRequest`].
pub fn read(text: &str) -> Result<QueueRequest, Refusal> {
    let mut object = Object::read(text)?;
    let paused: Option<bool> = object.get("paused", "true or false");
    let paused = object.required("paused", paused);
    object.end()?;
    Ok(QueueRequest { paused: paused.unwrap_or_default() })
}
