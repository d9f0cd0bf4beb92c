//! What the path of an ending does not say: the bodies of `/complete`, `/fail` and `/snooze`. `/release` has none.

use serde::Serialize;
use serde_json::value::RawValue;

/// The work is done.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CompleteRequest {
    /// What it leaves behind: any JSON of at most 1 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub result: Option<Box<RawValue>>,
}

/// The attempt went wrong.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FailRequest {
    /// What went wrong; the first 8192 characters are kept.
    pub error: String,
    /// Whether another try may help; so it is unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Wait this long instead of the job's own back-off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Delay>))]
    pub retry_after_seconds: Option<f64>,
}

/// The job is put off.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SnoozeRequest {
    /// After how long to be given it again.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Delay))]
    pub seconds: f64,
}

/// The job is handed back: nothing more to say.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReleaseRequest {}
