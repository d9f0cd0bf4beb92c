//! Schedules and their occurrences.

use orchestrix_core::{
    FieldError, Invalid, JobId, Tenant, Timestamp,
    schedule::{Cadence, Misfire, NewSchedule, OccurrenceOutcome, Overlap, Reason, ScheduleName},
};
use orchestrix_store::{Backfill, Occurrence, PutResult, Schedule};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::value::RawValue;

#[cfg(feature = "openapi")]
use crate::schema::{
    CronExpression, Id, MisfirePolicy, Note, OccurrenceOutcome as OccurrenceOutcomeSchema, OccurrenceReason,
    OverlapPolicy, ScheduleId, Time, TimeNearNow, TimeZone,
};
use crate::{
    ObjectReader, RequestError,
    job::{self, JobRequest},
};

/// The definition of a schedule. Its name is in the path.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"cron": "0 9 * * *", "timezone": "Europe/Berlin", "job": {"jobType": "REPORT"}}))))]
pub struct ScheduleRequest {
    /// The cron expression: five fields, six with seconds first, or a name such as `@daily`.
    /// Mutually exclusive with `everySeconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<CronExpression>))]
    pub cron: Option<String>,
    /// The IANA time zone of `cron`. Defaults to `UTC`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TimeZone>))]
    pub timezone: Option<String>,
    /// The interval in seconds, aligned to 1970-01-01T00:00:00Z. Mutually exclusive with `cron`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 316224000))]
    pub every_seconds: Option<f64>,
    /// The job that each occurrence enqueues, as in `POST /jobs`.
    pub job: JobRequest,
    /// What happens when an occurrence is due while jobs of earlier occurrences are unfinished: `skip` (default),
    /// `allow`, `buffer_one` or `cancel_running`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<OverlapPolicy>))]
    pub overlap: Option<Overlap>,
    /// What happens to late occurrences: `skip`, `fire_once` (default) or `catch_up`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<MisfirePolicy>))]
    pub misfire: Option<Misfire>,
    /// The most late occurrences that `catch_up` fires.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10000))]
    pub catch_up_limit: Option<u32>,
    /// The largest random delay of an occurrence, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86400))]
    pub jitter_seconds: Option<f64>,
    /// No occurrence fires before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TimeNearNow>))]
    pub start_at: Option<Timestamp>,
    /// No occurrence fires at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TimeNearNow>))]
    pub end_at: Option<Timestamp>,
    /// Whether the schedule is paused. If omitted, an existing schedule keeps its paused state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// A note for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Note>))]
    pub note: Option<String>,
}

/// Read-only fields of [`ScheduleView`]. A `PUT` accepts and ignores them, so that a response can be sent back.
const READ_ONLY: [&str; 7] =
    ["nextTime", "nextFireAt", "lastFiredAt", "unfinishedJobs", "createdAt", "updatedAt", "tzdbVersion"];

/// Parses a schedule. The flag is true if the request says `"paused": false`, which resumes a paused schedule.
///
/// A job without a tenant gets `default_tenant`.
pub fn parse(name: ScheduleName, text: &str, default_tenant: &Tenant) -> Result<(NewSchedule, bool), RequestError> {
    let mut object = ObjectReader::parse(text)?;
    if let Some(repeated) = object.get::<String>("name", "a string")
        && repeated != name.as_str()
    {
        object.add_error("name", "must equal the name in the path");
    }
    for field in READ_ONLY {
        object.take(field);
    }
    let cadence = take_cadence(&mut object);
    let job = object.object("job").map(|mut inner| {
        let job = job::take_job(&mut inner, default_tenant);
        (job, inner.finish())
    });
    let job = match job {
        Some((job, finished)) => {
            object.add_nested_errors("job", finished);
            job
        }
        None => object.required("job", None),
    };
    let overlap = object.string("overlap", |text| text.parse::<Overlap>()).unwrap_or_default();
    let misfire = object.string("misfire", |text| text.parse::<Misfire>()).unwrap_or_default();
    let limit = object.integer("catchUpLimit");
    // A value that does not fit is out of range, and validation rejects 0.
    let catch_up_limit = limit.map_or(NewSchedule::DEFAULT_CATCH_UP, |n| u32::try_from(n).unwrap_or(0));
    let jitter = object.seconds("jitterSeconds").unwrap_or_default();
    let (start_at, end_at) = (object.time("startAt"), object.time("endAt"));
    let paused: Option<bool> = object.get("paused", "true or false");
    let note = object.get("note", "a string");
    let schedule = cadence.zip(job).map(|(cadence, job)| NewSchedule {
        overlap,
        misfire,
        catch_up_limit,
        jitter,
        start_at,
        end_at,
        paused: paused.unwrap_or_default(),
        note,
        ..NewSchedule::new(name, cadence, job)
    });
    if let Some(Err(invalid)) = schedule.as_ref().map(NewSchedule::validate) {
        for error in invalid.errors {
            object.add_error(&error.field, error.message);
        }
    }
    object.finish()?;
    let schedule = schedule.ok_or_else(|| Invalid::from(FieldError::new("cron", "or everySeconds is required")))?;
    Ok((schedule, paused == Some(false)))
}

fn take_cadence(object: &mut ObjectReader<'_>) -> Option<Cadence> {
    let cron: Option<String> = object.get("cron", "a string");
    let zone: Option<String> = object.get("timezone", "a string");
    let every = object.seconds("everySeconds");
    match (cron, every) {
        (Some(_), Some(_)) => {
            object.add_error("everySeconds", "cannot be combined with cron");
            None
        }
        (Some(cron), None) => match Cadence::cron(&cron, zone.as_deref().unwrap_or("UTC")) {
            Ok(cadence) => Some(cadence),
            Err(invalid) => {
                for error in invalid.errors {
                    object.add_error(&error.field, error.message);
                }
                None
            }
        },
        (None, Some(interval)) => {
            if zone.is_some_and(|zone| zone != "UTC") {
                object.add_error("timezone", "cannot be combined with everySeconds: an interval has no time zone");
            }
            object.record("everySeconds", Cadence::every(interval))
        }
        (None, None) => {
            if !object.has_error("everySeconds") {
                object.required::<()>("cron", None);
            }
            None
        }
    }
}

/// A schedule.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleView {
    /// The name.
    #[cfg_attr(feature = "openapi", schema(value_type = ScheduleId))]
    pub name: ScheduleName,
    /// The definition.
    #[serde(flatten)]
    pub request: ScheduleRequest,
    /// The current status.
    #[serde(flatten)]
    pub status: ScheduleStatus,
}

/// The current status of a schedule.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleStatus {
    /// In the response to `PUT`: `created`, `updated` or `unchanged`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put: Option<String>,
    /// In the response to pause and resume: whether the request changed the paused state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    /// The next nominal time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub next_time: Option<Timestamp>,
    /// The next nominal time plus jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub next_fire_at: Option<Timestamp>,
    /// When the schedule last fired.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_fired_at: Option<Timestamp>,
    /// The unfinished jobs of the schedule. In a list, the latest jobs, some of which may have finished.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Id>))]
    pub unfinished_jobs: Vec<JobId>,
    /// When the schedule was created.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When the schedule last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
    /// The version of the time zone database that computed the next time.
    pub tzdb_version: String,
}

// Implemented by hand because `serde(flatten)` would not preserve the text of the payload.
impl<'de> Deserialize<'de> for ScheduleView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct NameOnly {
            name: ScheduleName,
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let NameOnly { name } = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        Ok(Self {
            name,
            request: serde_json::from_str(raw.get()).map_err(D::Error::custom)?,
            status: serde_json::from_str(raw.get()).map_err(D::Error::custom)?,
        })
    }
}

/// Names the result of a `PUT` as the API spells it.
pub const fn put_result_name(put: PutResult) -> &'static str {
    match put {
        PutResult::Created => "created",
        PutResult::Updated => "updated",
        PutResult::Unchanged => "unchanged",
    }
}

impl From<&NewSchedule> for ScheduleRequest {
    fn from(schedule: &NewSchedule) -> Self {
        let (cron, timezone, every_seconds) = match &schedule.cadence {
            Cadence::Cron { cron, zone } => (Some(cron.to_string()), Some(zone.to_string()), None),
            Cadence::Every { interval } => (None, None, Some(interval.as_secs_f64())),
        };
        Self {
            cron,
            timezone,
            every_seconds,
            job: JobRequest::from(&schedule.job),
            overlap: Some(schedule.overlap),
            misfire: Some(schedule.misfire),
            catch_up_limit: Some(schedule.catch_up_limit),
            jitter_seconds: Some(schedule.jitter.as_secs_f64()),
            start_at: schedule.start_at,
            end_at: schedule.end_at,
            paused: Some(schedule.paused),
            note: schedule.note.clone(),
        }
    }
}

impl From<&Schedule> for ScheduleView {
    fn from(schedule: &Schedule) -> Self {
        Self {
            name: schedule.definition.name.clone(),
            request: ScheduleRequest::from(&schedule.definition),
            status: ScheduleStatus {
                put: None,
                changed: None,
                next_time: schedule.next_nominal,
                next_fire_at: schedule.next_fire_at,
                last_fired_at: schedule.last_fired_at,
                unfinished_jobs: schedule.open_jobs.clone(),
                created_at: schedule.created_at,
                updated_at: schedule.updated_at,
                tzdb_version: schedule.tzdb.clone(),
            },
        }
    }
}

/// Pauses a schedule.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PauseRequest {
    /// A note for people, such as the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Note>))]
    pub note: Option<String>,
}

/// Parses the note of a [`PauseRequest`]. The body may be empty.
pub fn parse_pause(text: &str) -> Result<Option<String>, RequestError> {
    let mut object = ObjectReader::parse(if text.trim().is_empty() { "{}" } else { text })?;
    let note: Option<String> = object.get("note", "a string");
    object.finish()?;
    Ok(note)
}

/// A range of past nominal times to fire.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-08T00:00:00Z", "overlap": "allow"}))))]
pub struct BackfillRequest {
    /// The start of the range, inclusive.
    #[cfg_attr(feature = "openapi", schema(value_type = TimeNearNow))]
    pub from: Timestamp,
    /// The end of the range, exclusive.
    #[cfg_attr(feature = "openapi", schema(value_type = Time))]
    pub to: Timestamp,
    /// The overlap policy of the backfill. Defaults to that of the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<OverlapPolicy>))]
    pub overlap: Option<Overlap>,
    /// If true, returns the plan and enqueues nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub dry_run: bool,
}

/// Parses a [`BackfillRequest`] into its range and whether it is a dry run.
pub fn parse_backfill(text: &str) -> Result<(Backfill, bool), RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let from = object.time("from");
    let from = object.required("from", from);
    let to = object.time("to");
    let to = object.required("to", to);
    let overlap = object.string("overlap", |text| text.parse::<Overlap>());
    let dry_run = object.get("dryRun", "true or false").unwrap_or_default();
    object.finish()?;
    match from.zip(to) {
        Some((from, to)) => Ok((Backfill { from, to, overlap }, dry_run)),
        None => Err(Invalid::from(FieldError::new("from", "is required")).into()),
    }
}

/// The result or plan of a backfill.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackfillResponse {
    /// The overlap policy that applied.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub overlap: Overlap,
    /// The number of jobs enqueued.
    pub fired: usize,
    /// The number of times that the overlap policy skipped.
    pub skipped: usize,
    /// Whether this is a plan only.
    pub dry_run: bool,
    /// The plan. Present in a dry run only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<OccurrenceView>>,
}

/// Upcoming nominal times.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UpcomingTimesResponse {
    /// The nominal times, without jitter.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Time>))]
    pub times: Vec<Timestamp>,
}

/// An occurrence of a schedule, or a range of missed occurrences.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OccurrenceView {
    /// The nominal time. In a range, the first.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub nominal_time: Timestamp,
    /// The outcome.
    #[cfg_attr(feature = "openapi", schema(value_type = OccurrenceOutcomeSchema))]
    pub outcome: OccurrenceOutcome,
    /// The reason for the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<OccurrenceReason>))]
    pub reason: Option<Reason>,
    /// The job that the occurrence enqueued.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid"))]
    pub job_id: Option<JobId>,
    /// When the occurrence fired.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub fired_at: Option<Timestamp>,
    /// In a range, the last nominal time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub until_time: Option<Timestamp>,
    /// In a range, the number of occurrences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl From<Occurrence> for OccurrenceView {
    fn from(occurrence: Occurrence) -> Self {
        let is_range = occurrence.count > 1;
        Self {
            nominal_time: occurrence.nominal,
            outcome: occurrence.outcome,
            reason: occurrence.reason,
            job_id: occurrence.job,
            fired_at: (occurrence.outcome == OccurrenceOutcome::Fired).then_some(occurrence.at),
            until_time: is_range.then_some(occurrence.until),
            count: is_range.then_some(occurrence.count),
        }
    }
}

/// The most upcoming times in one response.
pub const MAX_UPCOMING_TIMES: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn invalid_fields(text: &str) -> Vec<String> {
        let Err(RequestError::Invalid(invalid)) = parse(ScheduleName::trusted("s"), text, &Tenant::default()) else {
            panic!("accepted: {text}")
        };
        let mut fields: Vec<String> = invalid.errors.into_iter().map(|error| error.field).collect();
        fields.sort_unstable();
        fields
    }

    #[test]
    fn a_schedule_round_trips() {
        let text = r#"{"cron": "0 9 * * *", "timezone": "Europe/Berlin", "job": {"jobType": "report", "payload": {"a": 1.0}},
            "overlap": "buffer_one", "misfire": "catch_up", "catchUpLimit": 7, "jitterSeconds": 1.5,
            "startAt": "2027-01-01T00:00:00Z", "endAt": "2028-01-01T00:00:00Z", "paused": true, "note": "why"}"#;
        let (schedule, _) = parse(ScheduleName::trusted("s"), text, &Tenant::default()).unwrap();
        let written = serde_json::to_string(&ScheduleRequest::from(&schedule)).unwrap();
        assert_eq!(parse(ScheduleName::trusted("s"), &written, &Tenant::default()), Ok((schedule.clone(), false)));
        let view = ScheduleView::from(&Schedule::new(schedule, "2026-01-01T00:00:00Z".parse().unwrap()));
        let json = serde_json::to_string(&view).unwrap();
        assert!(json.contains(r#"{"a": 1.0}"#), "{json}");
        let again: ScheduleView = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), json);
    }

    #[test]
    fn every_invalid_field_is_reported() {
        assert_eq!(invalid_fields("{}"), ["cron", "job"]);
        assert_eq!(
            invalid_fields(
                r#"{"cron": "x", "timezone": "Mars/Olympus", "job": {"queue": "a b"}, "overlap": "y", "x": 1}"#
            ),
            ["cron", "job.jobType", "job.queue", "overlap", "timezone", "x"]
        );
        assert_eq!(
            invalid_fields(r#"{"cron": "@daily", "everySeconds": 5, "job": {"jobType": "t"}}"#),
            ["everySeconds"]
        );
        assert_eq!(invalid_fields(r#"{"everySeconds": 0.5, "job": {"jobType": "t"}}"#), ["everySeconds"]);
        assert_eq!(
            invalid_fields(
                r#"{"everySeconds": 5, "job": {"jobType": "t"}, "startAt": "2027-01-01T00:00:00Z", "endAt": "2026-01-01T00:00:00Z"}"#
            ),
            ["endAt"]
        );
    }
}
