//! The state of a job after an operator changed it.

use orchestrix_core::{JobId, JobState, JobStatus, Priority};
use serde::{Deserialize, Serialize};

use crate::{ObjectReader, RequestError};

/// A job and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobStateView {
    /// The job's id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// The status that clients see.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::JobStatus))]
    pub status: JobStatus,
    /// The state.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::JobState))]
    pub state: JobState,
}

impl JobStateView {
    /// Creates a view of a job in this state.
    pub const fn new(job_id: JobId, state: JobState) -> Self {
        Self { job_id, status: state.status(), state }
    }
}

/// Changes the priority of a job.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PriorityRequest {
    /// The new priority. Workers claim higher priorities first.
    #[cfg_attr(feature = "openapi", schema(value_type = i16, minimum = -1000, maximum = 1000))]
    pub priority: Priority,
}

/// Parses a [`PriorityRequest`].
pub fn parse_priority(text: &str) -> Result<Priority, RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let number: Option<i64> = object.get("priority", "an integer from -1000 to 1000");
    let number = object.required("priority", number);
    let priority = number.and_then(|number| object.record("priority", Priority::new(number)));
    object.finish()?;
    Ok(priority.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_request_is_validated() {
        assert_eq!(parse_priority(r#"{"priority": -1000}"#).unwrap().get(), -1000);
        for text in ["{}", r#"{"priority": 1001}"#, r#"{"priority": 1.5}"#, r#"{"priority": 1, "x": 1}"#] {
            assert!(matches!(parse_priority(text), Err(RequestError::Invalid(_))), "{text}");
        }
    }
}
