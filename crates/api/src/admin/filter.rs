//! Filters of jobs, in the query of a list and in the body of a bulk operation.

use orchestrix_core::{FieldError, JobId, JobState, JobType, Queue, Tag, Tenant, Timestamp};
use orchestrix_store::{JobFilter, PageRequest};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::page;
#[cfg(feature = "openapi")]
use crate::schema::{JobStates, Name, SingleLine, Time, TypeName};
use crate::{ObjectReader, RequestError};

/// Selects jobs. All given criteria must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobFilterRequest {
    /// Jobs in one of these states, separated by commas: `created`, `blocked`, `scheduled`, `pending`, `dispatched`,
    /// `running`, `retrying`, `completed`, `dead`, `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<JobStates>))]
    pub state: Option<String>,
    /// The criteria other than the state.
    #[serde(flatten)]
    pub criteria: JobCriteria,
}

/// Selects jobs by criteria other than their state. All given criteria must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema, utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct JobCriteria {
    /// Jobs in this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>), param(value_type = Option<Name>))]
    pub queue: Option<String>,
    /// Jobs of this type.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TypeName>), param(value_type = Option<TypeName>))]
    pub job_type: Option<String>,
    /// Jobs of this tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>), param(value_type = Option<Name>))]
    pub tenant: Option<String>,
    /// Jobs with this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TypeName>), param(value_type = Option<TypeName>))]
    pub tag: Option<String>,
    /// Jobs whose type, correlation id, idempotency key or reason contains this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<SingleLine>), param(value_type = Option<SingleLine>))]
    pub q: Option<String>,
    /// Jobs enqueued at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>), param(value_type = Option<Time>))]
    pub from: Option<Timestamp>,
    /// Jobs enqueued before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>), param(value_type = Option<Time>))]
    pub to: Option<Timestamp>,
}

impl From<JobFilter> for JobFilterRequest {
    fn from(filter: JobFilter) -> Self {
        let state = filter.states.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(",");
        Self {
            state: (!state.is_empty()).then_some(state),
            criteria: JobCriteria {
                queue: filter.queue.map(Into::into),
                job_type: filter.job_type.map(Into::into),
                tenant: filter.tenant.map(Into::into),
                tag: filter.tag.map(Into::into),
                q: filter.text,
                from: filter.from,
                to: filter.to,
            },
        }
    }
}

/// The longest search text, in characters.
const MAX_TEXT: usize = 255;

/// Takes the fields of a [`JobFilterRequest`] out of an object.
pub fn take_filter(object: &mut ObjectReader<'_>) -> JobFilter {
    JobFilter { states: take_states(object), ..take_criteria(object) }
}

/// Takes the fields of [`JobCriteria`] out of an object. A state is then an unknown field.
pub fn take_criteria(object: &mut ObjectReader<'_>) -> JobFilter {
    JobFilter {
        states: Vec::new(),
        queue: object.string("queue", |text| Queue::new(text)),
        job_type: object.string("jobType", |text| JobType::new(text)),
        tenant: object.string("tenant", |text| Tenant::new(text)),
        tag: object.string("tag", |text| Tag::new(text)),
        text: object.string("q", parse_search_text),
        from: take_time(object, "from"),
        to: take_time(object, "to"),
    }
}

/// Records an error unless the request selects jobs explicitly: by a filter with at least one criterion, or by `all`.
///
/// A forgotten criterion must not act on every job.
pub fn check_selection(object: &mut ObjectReader<'_>, filter: Option<&JobFilter>, all: bool) {
    let narrows = filter.is_some_and(|filter| *filter != JobFilter::default());
    match (filter.is_some(), narrows, all) {
        (true, _, true) => object.add_error("all", "cannot be combined with filter"),
        (_, false, false) => {
            object.add_error("filter", "must have at least one criterion; use `\"all\": true` to select every job");
        }
        _ => {}
    }
}

/// Parses the query of a list of jobs: a [`JobFilterRequest`] and a page.
pub fn parse_list(text: &str) -> Result<(JobFilter, PageRequest<JobId>), RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let filter = take_filter(&mut object);
    let page = page::take_page(&mut object, |text| text.parse().ok());
    object.finish()?;
    Ok((filter, page))
}

/// Parses the query of a list of dead jobs: [`JobCriteria`] and a page.
pub fn parse_dead_list(text: &str) -> Result<(JobFilter, PageRequest<JobId>), RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let filter = take_criteria(&mut object);
    let page = page::take_page(&mut object, |text| text.parse().ok());
    object.finish()?;
    Ok((JobFilter { states: vec![JobState::Dead], ..filter }, page))
}

// Accepts a string of comma-separated states, as in a query, and an array, as in a body.
fn take_states(object: &mut ObjectReader<'_>) -> Vec<JobState> {
    let Some(raw) = object.take("state") else { return Vec::new() };
    let Some(names) = state_names(raw) else {
        object.add_error("state", "must be job states separated by commas");
        return Vec::new();
    };
    let mut states = Vec::new();
    for name in names {
        states.extend(object.record("state", name.parse::<JobState>().map_err(|_| unknown_state(&name))));
    }
    states
}

fn state_names(raw: &RawValue) -> Option<Vec<String>> {
    match serde_json::from_str::<String>(raw.get()) {
        Ok(text) => Some(text.split(',').map(str::to_owned).collect()),
        Err(_) => serde_json::from_str(raw.get()).ok(),
    }
}

fn unknown_state(name: &str) -> FieldError {
    let known: Vec<&str> = JobState::ALL.iter().map(|state| state.as_str()).collect();
    let name: String = name.chars().take(32).collect();
    FieldError::new("state", format!("{name:?} is none of {}", known.join(", ")))
}

fn parse_search_text(text: &str) -> Result<String, FieldError> {
    match (1..=MAX_TEXT).contains(&text.chars().count()) && !text.chars().any(char::is_control) {
        true => Ok(text.to_owned()),
        false => {
            Err(FieldError::new("q", format!("must have 1 to {MAX_TEXT} characters, none of them control characters")))
        }
    }
}

// PostgreSQL and SQLite do not both support times before the year 1.
pub(super) fn take_time(object: &mut ObjectReader<'_>, field: &str) -> Option<Timestamp> {
    const YEAR_1: i64 = -62_135_596_800;
    let time = object.time(field)?;
    match time.as_second() >= YEAR_1 {
        true => Some(time),
        false => {
            object.add_error(field, "must not be before the year 1");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invalid_fields(text: &str) -> Vec<String> {
        let Err(RequestError::Invalid(invalid)) = parse_list(text) else { panic!("accepted: {text}") };
        let mut fields: Vec<String> = invalid.errors.into_iter().map(|error| error.field).collect();
        fields.sort_unstable();
        fields
    }

    #[test]
    fn a_filter_round_trips() {
        let criteria = JobCriteria {
            queue: Some("q".into()),
            job_type: Some("t:1".into()),
            tenant: Some("acme".into()),
            tag: Some("x".into()),
            q: Some("order 9".into()),
            from: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            to: Some("2026-01-02T00:00:00Z".parse().unwrap()),
        };
        let (from, to) = (criteria.from, criteria.to);
        let request = JobFilterRequest { state: Some("dead,running".into()), criteria };
        let (filter, page) = parse_list(&serde_json::to_string(&request).unwrap()).unwrap();
        assert_eq!(filter.states, [JobState::Dead, JobState::Running]);
        assert_eq!(
            (filter.queue, filter.text, filter.from, filter.to),
            (Some(Queue::trusted("q")), Some("order 9".into()), from, to)
        );
        assert_eq!(page, PageRequest::first(page::DEFAULT_LIMIT));
        let (as_array, _) = parse_list(r#"{"state": ["dead", "running"], "limit": "7"}"#).unwrap();
        assert_eq!(as_array.states, filter.states);
    }

    #[test]
    fn every_invalid_field_is_reported_at_once() {
        let text = r#"{"state": "dead,asleep,", "queue": "a b", "jobType": "", "tenant": "ä", "tag": "a b", "q": "\u0000",
            "from": "yesterday", "to": "-009999-01-01T00:00:00Z", "cursor": "x", "limit": "1001", "colour": "red"}"#;
        assert_eq!(
            invalid_fields(text),
            ["colour", "cursor", "from", "jobType", "limit", "q", "queue", "state", "state", "tag", "tenant", "to"]
        );
        assert_eq!(invalid_fields(r#"{"state": 3, "limit": "many"}"#), ["limit", "state"]);
    }

    #[test]
    fn a_list_of_dead_jobs_accepts_no_state() {
        assert_eq!(parse_dead_list("{}").unwrap().0.states, [JobState::Dead]);
        assert!(matches!(parse_dead_list(r#"{"state": "dead"}"#), Err(RequestError::Invalid(_))));
    }
}
