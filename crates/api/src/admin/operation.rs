//! Operations: one action on many jobs, worked off by the leader.

use orchestrix_core::{FieldError, Invalid, OperationId, Priority, Tenant, Timestamp};
use orchestrix_store::{BulkAction, JobFilter, Operation};
use serde::{Deserialize, Serialize};

use super::filter::{self, FilterRequest};
use crate::{Object, job::Refusal};

/// One action on all jobs that match.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkRequest {
    /// What to do: `retry` dead and cancelled jobs, `cancel` unfinished ones, or give unfinished ones a `priority`.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::ActionWord))]
    pub action: String,
    /// With the action `priority`, and only with it: how urgent they should be, higher first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i16>, minimum = -1000, maximum = 1000))]
    pub priority: Option<Priority>,
    /// To which jobs. One that says nothing is a mistake: see `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterRequest>,
    /// To every job there is. Excludes `filter`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub all: bool,
    /// Only count them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub dry_run: bool,
}

/// A [`BulkRequest`], read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bulk {
    /// What to do.
    pub action: BulkAction,
    /// To which jobs.
    pub filter: JobFilter,
    /// Whether to count only.
    pub dry_run: bool,
}

/// Reads a [`BulkRequest`].
pub fn read(text: &str) -> Result<Bulk, Refusal> {
    let mut object = Object::read(text)?;
    let word = object.text("action", |text| Ok(text.to_owned()));
    let word = object.required("action", word);
    let number: Option<i64> = object.get("priority", "a whole number from -1000 to 1000");
    let priority = number.and_then(|number| object.keep("priority", Priority::new(number)));
    let filter = object.object("filter").map(|mut inner| {
        let filter = filter::take(&mut inner);
        object.take_in("filter", inner.end());
        filter
    });
    let all = object.get("all", "true or false").unwrap_or_default();
    let dry_run = object.get("dryRun", "true or false").unwrap_or_default();
    let narrows = filter.as_ref().is_some_and(|filter| *filter != JobFilter::default());
    if object.is_good() {
        match (filter.is_some(), narrows, all) {
            (true, _, true) => object.bad("all", "excludes filter"),
            (_, false, false) => object.bad("filter", "says nothing, which is every job: give `all` if that is meant"),
            _ => {}
        }
    }
    let action = match word {
        Some(_) if object.is_bad("priority") => None,
        Some(word) => match BulkAction::parse(&word, priority) {
            Ok(action) => Some(action),
            Err(error) => {
                object.bad(&error.field, error.message);
                None
            }
        },
        None => None,
    };
    object.end()?;
    let action = action.ok_or_else(|| Invalid::from(FieldError::new("action", "is required")))?;
    Ok(Bulk { action, filter: filter.unwrap_or_default(), dry_run })
}

/// An operation that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Begun {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub operation_id: OperationId,
}

/// An operation as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OperationView {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub operation_id: OperationId,
    /// What is done: `retry`, `cancel` or `priority`.
    pub action: String,
    /// How urgent jobs are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i16>))]
    pub priority: Option<Priority>,
    /// To which jobs; none that was recorded after it was begun.
    pub filter: FilterRequest,
    /// Whether it only counts.
    pub dry_run: bool,
    /// How it stands: `running`, `done`, `aborted` or `failed`.
    pub state: String,
    /// How many jobs matched so far that could take it.
    pub matched: u64,
    /// How many of them were changed.
    pub changed: u64,
    /// How many could not take it any more.
    pub refused: u64,
    /// When it was begun.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it last had a turn, or was stopped.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Who wanted it.
    pub actor: String,
    /// The tenant that they are bound to.
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
            filter: FilterRequest::from(operation.filter),
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

    fn fields(text: &str) -> Vec<String> {
        let Err(Refusal::Invalid(invalid)) = read(text) else { panic!("taken: {text}") };
        invalid.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn an_action_is_taken_on_jobs_that_match() {
        let bulk = read(r#"{"action": "cancel", "filter": {"queue": "q"}, "dryRun": true}"#).unwrap();
        let filter = JobFilter { queue: Some(Queue::trusted("q")), ..JobFilter::default() };
        assert_eq!(bulk, Bulk { action: BulkAction::Cancel, filter, dry_run: true });
        let urgent = read(r#"{"action": "priority", "priority": 5, "filter": {"tag": "x"}}"#).unwrap();
        assert_eq!(urgent.action, BulkAction::Priority(Priority::new(5).unwrap()));
        assert_eq!(fields(r#"{"action": "purge", "filter": {"tag": "x"}}"#), ["action"]);
        assert_eq!(fields(r#"{"action": "priority", "filter": {"tag": "x"}}"#), ["priority"]);
        assert_eq!(fields(r#"{"action": "cancel", "priority": 5, "filter": {"tag": "x"}}"#), ["priority"]);
        let text = r#"{"filter": {"queue": "", "x": 1}, "priority": 2000, "dryRun": 1, "x": 1}"#;
        assert_eq!(fields(text), ["action", "priority", "filter.queue", "filter.x", "dryRun", "x"]);
    }

    #[test]
    fn every_job_is_meant_only_if_it_is_said() {
        assert_eq!(fields(r#"{"action": "cancel"}"#), ["filter"]);
        assert_eq!(fields(r#"{"action": "cancel", "filter": {}}"#), ["filter"]);
        assert_eq!(fields(r#"{"action": "cancel", "filter": {}, "dryRun": true}"#), ["filter"]);
        assert_eq!(fields(r#"{"action": "cancel", "filter": {"queue": "q"}, "all": true}"#), ["all"]);
        assert_eq!(fields(r#"{"action": "cancel", "filter": {}, "all": true}"#), ["all"]);
        assert_eq!(read(r#"{"action": "cancel", "all": true}"#).unwrap().filter, JobFilter::default());
    }
}
