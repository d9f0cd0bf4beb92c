//! BulkSpec operations: one action on many jobs, executed by the leader.

use orchestrix_core::{FieldError, Invalid, OperationId, Priority, Tenant, Timestamp};
use orchestrix_store::{BulkAction, JobFilter, Operation};
use serde::{Deserialize, Serialize};

use super::filter::{self, JobFilterRequest};
use crate::{ObjectReader, RequestError};

/// Starts a bulk operation on all jobs that match.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkRequest {
    /// The action: `retry` dead and cancelled jobs, `cancel` unfinished jobs, or set the `priority` of unfinished jobs.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::BulkActionName))]
    pub action: String,
    /// The new priority. Required with the action `priority`, not allowed otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i16>, minimum = -1000, maximum = 1000))]
    pub priority: Option<Priority>,
    /// Selects the jobs. At least one criterion is required: use `all` to select every job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<JobFilterRequest>,
    /// If true, selects every job. Mutually exclusive with `filter`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub all: bool,
    /// If true, counts the jobs and changes nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub dry_run: bool,
}

/// A parsed [`BulkRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkSpec {
    /// The action.
    pub action: BulkAction,
    /// Selects the jobs.
    pub filter: JobFilter,
    /// Whether to only count the jobs.
    pub dry_run: bool,
}

/// Parses a [`BulkRequest`].
pub fn parse_bulk(text: &str) -> Result<BulkSpec, RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let name = object.string("action", |text| Ok(text.to_owned()));
    let name = object.required("action", name);
    let number: Option<i64> = object.get("priority", "an integer from -1000 to 1000");
    let priority = number.and_then(|number| object.record("priority", Priority::new(number)));
    let filter = object.object("filter").map(|mut inner| {
        let filter = filter::take_filter(&mut inner);
        object.add_nested_errors("filter", inner.finish());
        filter
    });
    let all = object.get("all", "true or false").unwrap_or_default();
    let dry_run = object.get("dryRun", "true or false").unwrap_or_default();
    if object.is_valid() {
        filter::check_selection(&mut object, filter.as_ref(), all);
    }
    let action = match name {
        Some(_) if object.has_error("priority") => None,
        Some(name) => match BulkAction::parse(&name, priority) {
            Ok(action) => Some(action),
            Err(error) => {
                object.add_error(&error.field, error.message);
                None
            }
        },
        None => None,
    };
    object.finish()?;
    let action = action.ok_or_else(|| Invalid::from(FieldError::new("action", "is required")))?;
    Ok(BulkSpec { action, filter: filter.unwrap_or_default(), dry_run })
}

/// The response to the start of a bulk operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkResponse {
    /// The operation's id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub operation_id: OperationId,
}

/// A bulk operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OperationView {
    /// The operation's id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub operation_id: OperationId,
    /// The action: `retry`, `cancel` or `priority`.
    pub action: String,
    /// The new priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i16>))]
    pub priority: Option<Priority>,
    /// Selects the jobs. Jobs enqueued after the operation started are not affected.
    pub filter: JobFilterRequest,
    /// Whether the operation only counts jobs.
    pub dry_run: bool,
    /// The state: `running`, `done`, `aborted` or `failed`.
    pub state: String,
    /// The number of matching jobs so far that the action applies to.
    pub matched: u64,
    /// The number of jobs changed.
    pub changed: u64,
    /// The number of jobs whose state no longer allowed the action.
    pub refused: u64,
    /// When the operation started.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When the operation last progressed or was aborted.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
    /// When the operation finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    /// The error of a failed operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The actor that started the operation.
    pub actor: String,
    /// The tenant that the actor is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub tenant: Option<Tenant>,
}

impl From<Operation> for OperationView {
    fn from(operation: Operation) -> Self {
        Self {
            operation_id: operation.id,
            action: operation.action.as_str().into(),
            priority: operation.action.priority(),
            filter: JobFilterRequest::from(operation.filter),
            dry_run: operation.dry_run,
            state: operation.state.as_str().into(),
            matched: operation.matched,
            changed: operation.changed,
            refused: operation.refused,
            created_at: operation.created_at,
            updated_at: operation.updated_at,
            finished_at: operation.finished_at,
            error: operation.error,
            actor: operation.actor,
            tenant: operation.tenant,
        }
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::Queue;

    use super::*;

    fn invalid_fields(text: &str) -> Vec<String> {
        let Err(RequestError::Invalid(invalid)) = parse_bulk(text) else { panic!("accepted: {text}") };
        invalid.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn a_bulk_request_is_parsed_and_every_invalid_field_is_reported() {
        let bulk = parse_bulk(r#"{"action": "cancel", "filter": {"queue": "q"}, "dryRun": true}"#).unwrap();
        let filter = JobFilter { queue: Some(Queue::trusted("q")), ..JobFilter::default() };
        assert_eq!(bulk, BulkSpec { action: BulkAction::Cancel, filter, dry_run: true });
        let urgent = parse_bulk(r#"{"action": "priority", "priority": 5, "filter": {"tag": "x"}}"#).unwrap();
        assert_eq!(urgent.action, BulkAction::Priority(Priority::new(5).unwrap()));
        assert_eq!(invalid_fields(r#"{"action": "purge", "filter": {"tag": "x"}}"#), ["action"]);
        assert_eq!(invalid_fields(r#"{"action": "priority", "filter": {"tag": "x"}}"#), ["priority"]);
        assert_eq!(invalid_fields(r#"{"action": "cancel", "priority": 5, "filter": {"tag": "x"}}"#), ["priority"]);
        let text = r#"{"filter": {"queue": "", "x": 1}, "priority": 2000, "dryRun": 1, "x": 1}"#;
        assert_eq!(invalid_fields(text), ["action", "priority", "filter.queue", "filter.x", "dryRun", "x"]);
    }

    #[test]
    fn selecting_every_job_requires_all() {
        assert_eq!(invalid_fields(r#"{"action": "cancel"}"#), ["filter"]);
        assert_eq!(invalid_fields(r#"{"action": "cancel", "filter": {}}"#), ["filter"]);
        assert_eq!(invalid_fields(r#"{"action": "cancel", "filter": {}, "dryRun": true}"#), ["filter"]);
        assert_eq!(invalid_fields(r#"{"action": "cancel", "filter": {"queue": "q"}, "all": true}"#), ["all"]);
        assert_eq!(invalid_fields(r#"{"action": "cancel", "filter": {}, "all": true}"#), ["all"]);
        assert_eq!(parse_bulk(r#"{"action": "cancel", "all": true}"#).unwrap().filter, JobFilter::default());
    }
}
