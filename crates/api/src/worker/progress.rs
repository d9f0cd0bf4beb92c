//! How far a running job has come.

use orchestrix_core::Progress;
use orchestrix_store::ProgressUpdate;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{raw, take_json};
use crate::{Object, job::Refusal};

/// How far a running job has come.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProgressRequest {
    /// From 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 100))]
    pub percent: Option<f64>,
    /// In words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Message>))]
    pub message: Option<String>,
    /// What the next attempt should get back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub checkpoint: Option<Box<RawValue>>,
}

impl From<&ProgressUpdate> for ProgressRequest {
    fn from(update: &ProgressUpdate) -> Self {
        Self {
            percent: update.progress.as_ref().and_then(|progress| progress.percent),
            message: update.progress.as_ref().and_then(|progress| progress.message.clone()),
            checkpoint: update.checkpoint.as_ref().map(raw),
        }
    }
}

/// Reads how far a job has come.
pub fn read_progress(text: &str) -> Result<ProgressUpdate, Refusal> {
    let mut object = Object::read(text)?;
    // No store keeps the sign of nothing.
    let percent = object.get::<f64>("percent", "a number").map(|percent| percent + 0.0);
    let message = object.get("message", "a string");
    let checkpoint = take_json(&mut object, "checkpoint");
    let said = percent.is_some() || message.is_some();
    let update = ProgressUpdate { progress: said.then_some(Progress { percent, message }), checkpoint };
    if let Err(error) = update.validate() {
        object.bad(&error.field, error.message);
    }
    object.end()?;
    Ok(update)
}
