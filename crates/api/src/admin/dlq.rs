//! The dead letter queue: redrives and purges dead jobs.

use std::time::Duration;

use orchestrix_core::{FieldError, JobId, JobState};
use orchestrix_store::{JobFilter, PageRequest};
use serde::{Deserialize, Serialize};

use super::filter::{self, JobCriteria};
use crate::{Code, ObjectReader, RequestError};

/// The most jobs that one request redrives.
pub const MAX_REDRIVE: usize = PageRequest::<JobId>::MAX_LIMIT;

/// Redrives dead jobs: those that match a filter, all of them, or those with the given ids.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RedriveRequest {
    /// Redrives the dead jobs that match. At least one criterion is required. Use `all` to redrive every dead job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<JobCriteria>,
    /// If true, redrives every dead job. Mutually exclusive with `filter` and `jobIds`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub all: bool,
    /// Redrives these jobs, each independently. Mutually exclusive with `filter` and `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::schema::Id>>, min_items = 1, max_items = 1000))]
    pub job_ids: Option<Vec<JobId>>,
    /// The most jobs to redrive in this request, with `filter` or `all`. Defaults to 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
    pub limit: Option<usize>,
    /// Continues with the `nextCursor` of the previous response. Mutually exclusive with `jobIds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    pub cursor: Option<String>,
}

/// A parsed [`RedriveRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redrive {
    /// One page of the matching jobs.
    Matching(JobFilter, PageRequest<JobId>),
    /// The jobs with these ids.
    Jobs(Vec<JobId>),
}

/// Parses a [`RedriveRequest`].
pub fn parse_redrive(text: &str) -> Result<Redrive, RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let filter = object.object("filter").map(|mut inner| {
        let filter = filter::take_criteria(&mut inner);
        object.add_nested_errors("filter", inner.finish());
        filter
    });
    let all = object.get("all", "true or false").unwrap_or_default();
    let ids = object.strings("jobIds", MAX_REDRIVE, |text| text.parse::<JobId>());
    let limit = object.integer("limit").map_or(MAX_REDRIVE, |limit| usize::try_from(limit).unwrap_or(0));
    if !(1..=MAX_REDRIVE).contains(&limit) {
        object.add_error("limit", format!("must be from 1 to {MAX_REDRIVE}"));
    }
    let cursor = object.string("cursor", |text| {
        text.parse::<JobId>().map_err(|_| FieldError::new("", "must be the nextCursor of a previous response"))
    });
    if ids.is_some() && cursor.is_some() {
        object.add_error("cursor", "cannot be combined with jobIds");
    }
    if ids.as_ref().is_some_and(Vec::is_empty) && object.is_valid() {
        object.add_error("jobIds", "must not be empty");
    }
    if ids.is_some() && (filter.is_some() || all) {
        let other = if filter.is_some() { "filter" } else { "all" };
        object.add_error("jobIds", format!("cannot be combined with {other}"));
    }
    if ids.is_none() && object.is_valid() {
        filter::check_selection(&mut object, filter.as_ref(), all);
    }
    object.finish()?;
    Ok(match ids {
        Some(ids) => Redrive::Jobs(ids),
        None => {
            let filter = JobFilter { states: vec![JobState::Dead], ..filter.unwrap_or_default() };
            Redrive::Matching(filter, PageRequest { cursor, limit })
        }
    })
}

/// The result of a redrive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RedriveResponse {
    /// The redriven jobs.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub retried: Vec<JobId>,
    /// With `jobIds`: the jobs that were not redriven.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedJob>,
    /// Whether more jobs may match. One request examines a bounded number of jobs, so it may redrive few or none
    /// while more match.
    pub more: bool,
    /// The cursor for the next request, if more jobs may match.
    /// Following the cursor redrives each job once, even if it dies again in the meantime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A job that was not redriven, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefusedJob {
    /// The job's id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// The stable error code.
    pub code: Code,
    /// A description of the error.
    pub detail: String,
}

/// Deletes dead jobs permanently.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PurgeRequest {
    /// Deletes jobs that died at least this many seconds ago. 0 deletes every dead job.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 946080000))]
    pub older_than_seconds: f64,
    /// If true, counts the jobs and deletes nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub dry_run: bool,
}

/// Parses a [`PurgeRequest`] into the age and whether it is a dry run.
pub fn parse_purge(text: &str) -> Result<(Duration, bool), RequestError> {
    // The longest retention that the stores support.
    const MAX: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    let mut object = ObjectReader::parse(text)?;
    let older_than = object.seconds("olderThanSeconds");
    let older_than = object.required("olderThanSeconds", older_than);
    if older_than.is_some_and(|older_than| older_than > MAX) {
        object.add_error("olderThanSeconds", format!("must be at most {}", MAX.as_secs()));
    }
    let dry_run = object.get("dryRun", "true or false").unwrap_or_default();
    object.finish()?;
    Ok((older_than.unwrap_or(MAX), dry_run))
}

/// The result of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PurgeResponse {
    /// The number of jobs deleted, or counted in a dry run.
    pub count: usize,
    /// Whether more jobs may match. Send the same request again to continue.
    pub more: bool,
}

#[cfg(test)]
mod tests {
    use orchestrix_core::Queue;

    use super::*;

    const ID: &str = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";

    fn invalid_fields(result: Result<impl std::fmt::Debug, RequestError>) -> Vec<String> {
        let Err(RequestError::Invalid(invalid)) = result else { panic!("accepted: {result:?}") };
        invalid.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn a_redrive_takes_a_filter_all_or_job_ids() {
        let dead = JobFilter { states: vec![JobState::Dead], ..JobFilter::default() };
        assert_eq!(
            parse_redrive(r#"{"all": true}"#).unwrap(),
            Redrive::Matching(dead.clone(), PageRequest::first(MAX_REDRIVE))
        );
        let queue = JobFilter { queue: Some(Queue::trusted("q")), ..dead };
        let page = PageRequest { cursor: Some(ID.parse().unwrap()), limit: 5 };
        assert_eq!(
            parse_redrive(&format!(r#"{{"filter": {{"queue": "q"}}, "limit": 5, "cursor": "{ID}"}}"#)).unwrap(),
            Redrive::Matching(queue, page)
        );
        let named = parse_redrive(&format!(r#"{{"jobIds": ["{ID}"]}}"#)).unwrap();
        assert_eq!(named, Redrive::Jobs(vec![ID.parse().unwrap()]));
        assert_eq!(invalid_fields(parse_redrive(r#"{"all": true, "cursor": "next"}"#)), ["cursor"]);
        assert_eq!(invalid_fields(parse_redrive(&format!(r#"{{"jobIds": ["{ID}"], "cursor": "{ID}"}}"#))), ["cursor"]);
        assert_eq!(invalid_fields(parse_redrive(r#"{"jobIds": []}"#)), ["jobIds"]);
        assert_eq!(invalid_fields(parse_redrive(&format!(r#"{{"jobIds": ["{ID}"], "filter": {{}}}}"#))), ["jobIds"]);
        assert_eq!(invalid_fields(parse_redrive(&format!(r#"{{"jobIds": ["{ID}"], "all": true}}"#))), ["jobIds"]);
        assert_eq!(
            invalid_fields(parse_redrive(r#"{"filter": {"state": "dead", "queue": ""}, "limit": 1001, "x": 1}"#)),
            ["filter.queue", "filter.state", "limit", "x"]
        );
    }

    #[test]
    fn redriving_every_dead_job_requires_all() {
        for text in ["{}", r#"{"filter": {}}"#, r#"{"filter": {}, "all": false}"#, r#"{"limit": 5}"#] {
            assert_eq!(invalid_fields(parse_redrive(text)), ["filter"], "{text}");
        }
        for text in [r#"{"filter": {}, "all": true}"#, r#"{"filter": {"queue": "q"}, "all": true}"#] {
            assert_eq!(invalid_fields(parse_redrive(text)), ["all"], "{text}");
        }
    }

    #[test]
    fn a_purge_requires_an_age() {
        assert_eq!(parse_purge(r#"{"olderThanSeconds": 1.5}"#).unwrap(), (Duration::from_millis(1500), false));
        assert_eq!(parse_purge(r#"{"olderThanSeconds": 0, "dryRun": true}"#).unwrap(), (Duration::ZERO, true));
        assert_eq!(invalid_fields(parse_purge("{}")), ["olderThanSeconds"]);
        assert_eq!(
            invalid_fields(parse_purge(r#"{"olderThanSeconds": 1e300, "dryRun": 1}"#)),
            ["olderThanSeconds", "dryRun"]
        );
    }
}
