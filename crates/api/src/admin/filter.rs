//! Which jobs: the same words behind a question mark and in a body.

use orchestrix_core::{FieldError, JobId, JobState, JobType, Queue, Tag, Tenant, Timestamp};
use orchestrix_store::{JobFilter, PageRequest};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::page;
#[cfg(feature = "openapi")]
use crate::schema::{Line, Name, States, Time, TypeName};
use crate::{Object, job::Refusal};

/// Which jobs; all that is given must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema, utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct FilterRequest {
    /// In one of these states, separated by commas: `created`, `blocked`, `scheduled`, `pending`, `dispatched`, `running`,
    /// `retrying`, `completed`, `dead`, `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<States>), param(value_type = Option<States>))]
    pub state: Option<String>,
    /// In this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>), param(value_type = Option<Name>))]
    pub queue: Option<String>,
    /// Of this type.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TypeName>), param(value_type = Option<TypeName>))]
    pub job_type: Option<String>,
    /// Of this tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>), param(value_type = Option<Name>))]
    pub tenant: Option<String>,
    /// With this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TypeName>), param(value_type = Option<TypeName>))]
    pub tag: Option<String>,
    /// Whose type, correlation id, idempotency key or reason holds this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Line>), param(value_type = Option<Line>))]
    pub q: Option<String>,
    /// Recorded at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>), param(value_type = Option<Time>))]
    pub from: Option<Timestamp>,
    /// Recorded before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>), param(value_type = Option<Time>))]
    pub to: Option<Timestamp>,
}

/// Which dead jobs; all that is given must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema, utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct DeadRequest {
    /// In this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>), param(value_type = Option<Name>))]
    pub queue: Option<String>,
    /// Of this type.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TypeName>), param(value_type = Option<TypeName>))]
    pub job_type: Option<String>,
    /// Of this tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>), param(value_type = Option<Name>))]
    pub tenant: Option<String>,
    /// With this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TypeName>), param(value_type = Option<TypeName>))]
    pub tag: Option<String>,
    /// Whose type, correlation id, idempotency key or reason holds this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Line>), param(value_type = Option<Line>))]
    pub q: Option<String>,
    /// Recorded at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>), param(value_type = Option<Time>))]
    pub from: Option<Timestamp>,
    /// Recorded before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Time>), param(value_type = Option<Time>))]
    pub to: Option<Timestamp>,
}

impl From<JobFilter> for FilterRequest {
    fn from(filter: JobFilter) -> Self {
        let state = filter.states.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(",");
        Self {
            state: (!state.is_empty()).then_some(state),
            queue: filter.queue.map(Into::into),
            job_type: filter.job_type.map(Into::into),
            tenant: filter.tenant.map(Into::into),
            tag: filter.tag.map(Into::into),
            q: filter.text,
            from: filter.from,
            to: filter.to,
        }
    }
}

impl From<FilterRequest> for DeadRequest {
    /// Whatever states it names.
    fn from(filter: FilterRequest) -> Self {
        let FilterRequest { state: _, queue, job_type, tenant, tag, q, from, to } = filter;
        Self { queue, job_type, tenant, tag, q, from, to }
    }
}

/// The longest text to look for.
const MAX_TEXT: usize = 255;

/// Takes a filter out of an object, states and all.
pub fn take(object: &mut Object<'_>) -> JobFilter {
    JobFilter { states: take_states(object), ..take_but_states(object) }
}

/// The same where the states are given by what is asked for, so that to name any is a mistake.
pub fn take_but_states(object: &mut Object<'_>) -> JobFilter {
    JobFilter {
        states: Vec::new(),
        queue: object.text("queue", |text| Queue::new(text)),
        job_type: object.text("jobType", |text| JobType::new(text)),
        tenant: object.text("tenant", |text| Tenant::new(text)),
        tag: object.text("tag", |text| Tag::new(text)),
        text: object.text("q", text),
        from: take_time(object, "from"),
        to: take_time(object, "to"),
    }
}

/// Reads a question for jobs, `FilterRequest` with a part of the list.
pub fn read_list(text: &str) -> Result<(JobFilter, PageRequest<JobId>), Refusal> {
    let mut object = Object::read(text)?;
    let filter = take(&mut object);
    let page = page::take(&mut object, |text| text.parse().ok());
    object.end()?;
    Ok((filter, page))
}

/// The same for dead jobs: no other state can be asked for.
pub fn read_dead(text: &str) -> Result<(JobFilter, PageRequest<JobId>), Refusal> {
    let mut object = Object::read(text)?;
    let filter = take_but_states(&mut object);
    let page = page::take(&mut object, |text| text.parse().ok());
    object.end()?;
    Ok((JobFilter { states: vec![JobState::Dead], ..filter }, page))
}

// One text as behind a question mark, or an array as one would write it in a body.
fn take_states(object: &mut Object<'_>) -> Vec<JobState> {
    let Some(raw) = object.take("state") else { return Vec::new() };
    let Some(words) = words(raw) else {
        object.bad("state", "must be states separated by commas");
        return Vec::new();
    };
    let mut states = Vec::new();
    for word in words {
        states.extend(object.keep("state", word.parse::<JobState>().map_err(|_| unknown(&word))));
    }
    states
}

fn words(raw: &RawValue) -> Option<Vec<String>> {
    match serde_json::from_str::<String>(raw.get()) {
        Ok(text) => Some(text.split(',').map(str::to_owned).collect()),
        Err(_) => serde_json::from_str(raw.get()).ok(),
    }
}

fn unknown(word: &str) -> FieldError {
    let known: Vec<&str> = JobState::ALL.iter().map(|state| state.as_str()).collect();
    let word: String = word.chars().take(32).collect();
    FieldError::new("state", format!("{word:?} is none of {}", known.join(", ")))
}

fn text(text: &str) -> Result<String, FieldError> {
    match (1..=MAX_TEXT).contains(&text.chars().count()) && !text.chars().any(char::is_control) {
        true => Ok(text.to_owned()),
        false => {
            Err(FieldError::new("q", format!("must have 1 to {MAX_TEXT} characters, none of them control characters")))
        }
    }
}

// Not every database holds times before our era.
pub(super) fn take_time(object: &mut Object<'_>, field: &str) -> Option<Timestamp> {
    const YEAR_1: i64 = -62_135_596_800;
    let time = object.time(field)?;
    match time.as_second() >= YEAR_1 {
        true => Some(time),
        false => {
            object.bad(field, "must not lie before the year 1");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Vec<String> {
        let Err(Refusal::Invalid(invalid)) = read_list(text) else { panic!("taken: {text}") };
        let mut fields: Vec<String> = invalid.errors.into_iter().map(|error| error.field).collect();
        fields.sort_unstable();
        fields
    }

    #[test]
    fn a_filter_is_written_and_read_alike() {
        let request = FilterRequest {
            state: Some("dead,running".into()),
            queue: Some("q".into()),
            job_type: Some("t:1".into()),
            tenant: Some("acme".into()),
            tag: Some("x".into()),
            q: Some("order 9".into()),
            from: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            to: Some("2026-01-02T00:00:00Z".parse().unwrap()),
        };
        let (filter, page) = read_list(&serde_json::to_string(&request).unwrap()).unwrap();
        assert_eq!(filter.states, [JobState::Dead, JobState::Running]);
        assert_eq!(
            (filter.queue, filter.text, filter.from, filter.to),
            (Some(Queue::trusted("q")), Some("order 9".into()), request.from, request.to)
        );
        assert_eq!(page, PageRequest::first(page::LIMIT));
        let (as_array, _) = read_list(r#"{"state": ["dead", "running"], "limit": "7"}"#).unwrap();
        assert_eq!(as_array.states, filter.states);
    }

    #[test]
    fn everything_wrong_is_named_at_once() {
        let text = r#"{"state": "dead,asleep,", "queue": "a b", "jobType": "", "tenant": "ä", "tag": "a b", "q": "\u0000",
            "from": "yesterday", "to": "-009999-01-01T00:00:00Z", "cursor": "x", "limit": "1001", "colour": "red"}"#;
        assert_eq!(
            fields(text),
            ["colour", "cursor", "from", "jobType", "limit", "q", "queue", "state", "state", "tag", "tenant", "to"]
        );
        assert_eq!(fields(r#"{"state": 3, "limit": "many"}"#), ["limit", "state"]);
    }

    #[test]
    fn dead_jobs_are_dead() {
        assert_eq!(read_dead("{}").unwrap().0.states, [JobState::Dead]);
        assert!(matches!(read_dead(r#"{"state": "dead"}"#), Err(Refusal::Invalid(_))));
    }
}
