//! Progress of running jobs.

use orchestrix_core::Progress;
use orchestrix_store::ProgressUpdate;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{raw, take_json};
use crate::{ObjectReader, RequestError};

/// The progress of a running job.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProgressRequest {
    /// The percentage, from 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 100))]
    pub percent: Option<f64>,
    /// A message for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::ProgressMessage>))]
    pub message: Option<String>,
    /// A checkpoint that the next attempt receives: any JSON of at most 1 MiB.
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

/// Parses a [`ProgressRequest`].
pub fn parse_progress(text: &str) -> Result<ProgressUpdate, RequestError> {
    let mut object = ObjectReader::parse(text)?;
    // Normalizes -0.0, whose sign the databases do not preserve.
    let percent = object.get::<f64>("percent", "a number").map(|percent| percent + 0.0);
    let message = object.get("message", "a string");
    let checkpoint = take_json(&mut object, "checkpoint");
    let has_progress = percent.is_some() || message.is_some();
    let update = ProgressUpdate { progress: has_progress.then_some(Progress { percent, message }), checkpoint };
    if let Err(error) = update.validate() {
        object.add_error(&error.field, error.message);
    }
    object.finish()?;
    Ok(update)
}
