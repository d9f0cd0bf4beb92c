//! Dead jobs: another chance, or an end.

use std::time::Duration;

use orchestrix_core::{FieldError, Invalid, JobId, JobState};
use orchestrix_store::{JobFilter, PageRequest};
use serde::{Deserialize, Serialize};

use super::filter::{self, DeadRequest};
use crate::{Code, Object, job::Refusal};

/// The most jobs that one request retries.
pub const MAX_REDRIVE: usize = PageRequest::<JobId>::MAX_LIMIT;

/// Which dead jobs get another chance: those that match, or those that are named.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RedriveRequest {
    /// Those that match, without a state: `{}` is all of them. Excludes `jobIds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<DeadRequest>,
    /// These, each by itself. Excludes `filter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::schema::Id>>, min_items = 1, max_items = 1000))]
    pub job_ids: Option<Vec<JobId>>,
    /// Of those that match, at most so many; 1000 unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
    pub limit: Option<usize>,
    /// Where to go on with the same filter: the `nextCursor` of the answer before. Excludes `jobIds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    pub cursor: Option<String>,
}

/// A [`RedriveRequest`], read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redrive {
    /// Those that match, a page of them.
    Matching(JobFilter, PageRequest<JobId>),
    /// These.
    Named(Vec<JobId>),
}

/// Reads a [`RedriveRequest`].
pub fn read_redrive(text: &str) -> Result<Redrive, Refusal> {
    let mut object = Object::read(text)?;
    let filter = object.object("filter").map(|mut inner| {
        let filter = filter::take_but_states(&mut inner);
        object.take_in("filter", inner.end());
        JobFilter { states: vec![JobState::Dead], ..filter }
    });
    let ids = object.texts("jobIds", MAX_REDRIVE, |text| text.parse::<JobId>());
    let limit = object.whole("limit").map_or(MAX_REDRIVE, |limit| usize::try_from(limit).unwrap_or(0));
    if !(1..=MAX_REDRIVE).contains(&limit) {
        object.bad("limit", format!("must be from 1 to {MAX_REDRIVE}"));
    }
    let cursor = object.text("cursor", |text| {
        text.parse::<JobId>().map_err(|_| FieldError::new("", "is not one that was answered here"))
    });
    if ids.is_some() && cursor.is_some() {
        object.bad("cursor", "goes only with filter");
    }
    if ids.as_ref().is_some_and(Vec::is_empty) && object.is_good() {
        object.bad("jobIds", "must not be empty");
    }
    let redrive = match (filter, ids) {
        (Some(_), Some(_)) => {
            object.bad("jobIds", "excludes filter");
            None
        }
        (Some(filter), None) => Some(Redrive::Matching(filter, PageRequest { cursor, limit })),
        (None, Some(ids)) => Some(Redrive::Named(ids)),
        (None, None) => {
            if !object.is_bad("jobIds") {
                object.required::<()>("filter", None);
            }
            None
        }
    };
    object.end()?;
    redrive.ok_or_else(|| Invalid::from(FieldError::new("filter", "is required")).into())
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Redriven {
    /// These may be claimed again.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub retried: Vec<JobId>,
    /// Of those that were named, the ones that were left as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedJob>,
    /// Whether more may match, even if few were retried now, or none: one request looks at so many jobs. The same request with `nextCursor` goes on.
    pub more: bool,
    /// Where to go on, if more may match. Whoever does retries every job once, though it may have died again meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A job that was left as it is, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefusedJob {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// Why, for programs.
    pub code: Code,
    /// The same in words.
    pub detail: String,
}

/// Which dead jobs are forgotten for good.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PurgeRequest {
    /// Those that died at least so long ago; 0 is all of them.
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 946080000))]
    pub older_than_seconds: f64,
    /// Only count them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub dry_run: bool,
}

/// Reads a [`PurgeRequest`]: how old, and whether only to count.
pub fn read_purge(text: &str) -> Result<(Duration, bool), Refusal> {
    // As far as any store looks back.
    const MAX: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    let mut object = Object::read(text)?;
    let older_than = object.seconds("olderThanSeconds");
    let older_than = object.required("olderThanSeconds", older_than);
    if older_than.is_some_and(|older_than| older_than > MAX) {
        object.bad("olderThanSeconds", format!("must be at most {}", MAX.as_secs()));
    }
    let dry_run = object.get("dryRun", "true or false").unwrap_or_default();
    object.end()?;
    Ok((older_than.unwrap_or(MAX), dry_run))
}

/// How many were forgotten, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Purged {
    /// So many.
    pub count: usize,
    /// Whether there may be more: of a count, beyond what one request looks at; otherwise the same request again goes on.
    pub more: bool,
}

#[cfg(test)]
mod tests {
    use orchestrix_core::Queue;

    use super::*;

    const ID: &str = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";

    fn fields(read: Result<impl std::fmt::Debug, Refusal>) -> Vec<String> {
        let Err(Refusal::Invalid(invalid)) = read else { panic!("{read:?}") };
        invalid.errors.into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn a_redrive_names_jobs_or_says_which() {
        let dead = JobFilter { states: vec![JobState::Dead], ..JobFilter::default() };
        assert_eq!(
            read_redrive(r#"{"filter": {}}"#).unwrap(),
            Redrive::Matching(dead.clone(), PageRequest::first(MAX_REDRIVE))
        );
        let queue = JobFilter { queue: Some(Queue::trusted("q")), ..dead };
        let page = PageRequest { cursor: Some(ID.parse().unwrap()), limit: 5 };
        assert_eq!(
            read_redrive(&format!(r#"{{"filter": {{"queue": "q"}}, "limit": 5, "cursor": "{ID}"}}"#)).unwrap(),
            Redrive::Matching(queue, page)
        );
        let named = read_redrive(&format!(r#"{{"jobIds": ["{ID}"]}}"#)).unwrap();
        assert_eq!(named, Redrive::Named(vec![ID.parse().unwrap()]));
        assert_eq!(fields(read_redrive("{}")), ["filter"]);
        assert_eq!(fields(read_redrive(r#"{"filter": {}, "cursor": "next"}"#)), ["cursor"]);
        assert_eq!(fields(read_redrive(&format!(r#"{{"jobIds": ["{ID}"], "cursor": "{ID}"}}"#))), ["cursor"]);
        assert_eq!(fields(read_redrive(r#"{"jobIds": []}"#)), ["jobIds"]);
        assert_eq!(fields(read_redrive(&format!(r#"{{"jobIds": ["{ID}"], "filter": {{}}}}"#))), ["jobIds"]);
        assert_eq!(
            fields(read_redrive(r#"{"filter": {"state": "dead", "queue": ""}, "limit": 1001, "x": 1}"#)),
            ["filter.queue", "filter.state", "limit", "x"]
        );
    }

    #[test]
    fn nothing_is_forgotten_without_an_age() {
        assert_eq!(read_purge(r#"{"olderThanSeconds": 1.5}"#).unwrap(), (Duration::from_millis(1500), false));
        assert_eq!(read_purge(r#"{"olderThanSeconds": 0, "dryRun": true}"#).unwrap(), (Duration::ZERO, true));
        assert_eq!(fields(read_purge("{}")), ["olderThanSeconds"]);
        assert_eq!(fields(read_purge(r#"{"olderThanSeconds": 1e300, "dryRun": 1}"#)), ["olderThanSeconds", "dryRun"]);
    }
}
