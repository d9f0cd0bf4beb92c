//! Where jobs stand, and what an operator changes about them.

use orchestrix_core::{JobId, JobState, JobStatus, Priority};
use serde::{Deserialize, Serialize};

use crate::{Object, job::Refusal};

/// A job and where it stands now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = JobStanding))]
pub struct Standing {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// Where it stands, as clients see it.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::job::Status))]
    pub status: JobStatus,
    /// Where it stands.
    #[cfg_attr(feature = "openapi", schema(value_type = StateWord))]
    pub state: JobState,
}

impl Standing {
    /// A job in this state.
    pub const fn of(job_id: JobId, state: JobState) -> Self {
        Self { job_id, status: state.status(), state }
    }
}

/// Where a job stands, in all words.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum StateWord {
    /// Recorded, held back until released.
    Created,
    /// Waits for other jobs.
    Blocked,
    /// Waits for a time.
    Scheduled,
    /// May be claimed now.
    Pending,
    /// Leased, not yet started.
    Dispatched,
    /// Its owner works on it.
    Running,
    /// Waits out its back-off.
    Retrying,
    /// Done.
    Completed,
    /// Failed for good, kept for a person.
    Dead,
    /// Given up.
    Cancelled,
}

/// How urgent a job should be.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PriorityRequest {
    /// Higher first.
    #[cfg_attr(feature = "openapi", schema(value_type = i16, minimum = -1000, maximum = 1000))]
    pub priority: Priority,
}

/// Reads a [`PriorityRequest`].
pub fn read_priority(text: &str) -> Result<Priority, Refusal> {
    let mut object = Object::read(text)?;
    let number: Option<i64> = object.get("priority", "a whole number from -1000 to 1000");
    let number = object.required("priority", number);
    let priority = number.and_then(|number| object.keep("priority", Priority::new(number)));
    object.end()?;
    Ok(priority.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_has_bounds_and_nothing_beside_it() {
        assert_eq!(read_priority(r#"{"priority": -1000}"#).unwrap().get(), -1000);
        for text in ["{}", r#"{"priority": 1001}"#, r#"{"priority": 1.5}"#, r#"{"priority": 1, "x": 1}"#] {
            assert!(matches!(read_priority(text), Err(Refusal::Invalid(_))), "{text}");
        }
    }
}
