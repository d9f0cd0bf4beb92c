//! Schedules and their ledger.

use orchestrix_core::{
    FieldError, Invalid, JobId, Tenant, Timestamp,
    schedule::{Cadence, Misfire, NewSchedule, OccurrenceOutcome, Overlap, Reason, ScheduleName},
};
use orchestrix_store::{Backfill, Occurrence, PutResult, Schedule};
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::value::RawValue;

#[cfg(feature = "openapi")]
use crate::schema::{
    CronText, Id, MisfirePolicy, Note, OccurrenceOutcome as OccurrenceOutcomeSchema, OccurrenceReason, OverlapPolicy,
    ScheduleId, Time, TimeNearNow, Zone,
};
use crate::{
    Object,
    job::{self, JobRequest, Refusal},
};

/// A schedule as it is asked for; its name stands in the path.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"cron": "0 9 * * *", "timezone": "Europe/Berlin", "job": {"jobType": "REPORT"}}))))]
pub struct ScheduleRequest {
    /// When it is due: five fields, six with seconds first, or a name such as `@daily`. Excludes `everySeconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<CronText>))]
    pub cron: Option<String>,
    /// The IANA zone of `cron`; `UTC` unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Zone>))]
    pub timezone: Option<String>,
    /// When it is due: so often, counted from 1970. Excludes `cron`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 316224000))]
    pub every_seconds: Option<f64>,
    /// What it creates each time, as in `POST /jobs`.
    pub job: JobRequest,
    /// What happens while earlier jobs of it are unfinished: `skip` (unless told otherwise), `allow`, `buffer_one` or
    /// `cancel_running`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<OverlapPolicy>))]
    pub overlap: Option<Overlap>,
    /// What happens to late occurrences: `skip`, `fire_once` (unless told otherwise) or `catch_up`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<MisfirePolicy>))]
    pub misfire: Option<Misfire>,
    /// How many late ones `catch_up` fires.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10000))]
    pub catch_up_limit: Option<u32>,
    /// How far occurrences are spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86400))]
    pub jitter_seconds: Option<f64>,
    /// No occurrence before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TimeNearNow>))]
    pub start_at: Option<Timestamp>,
    /// No occurrence at or after this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TimeNearNow>))]
    pub end_at: Option<Timestamp>,
    /// Set up, but not fired until resumed. What an operator paused stays so when it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// A remark for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Note>))]
    pub note: Option<String>,
}

/// What a schedule shows of itself and nobody sets.
const SHOWN: [&str; 7] =
    ["nextTime", "nextFireAt", "lastFiredAt", "unfinishedJobs", "createdAt", "updatedAt", "tzdbVersion"];

/// Reads a schedule, and whether it is said to be not paused: left out, what an operator paused stays so.
/// A job that names no tenant is of `home`.
pub fn read(name: ScheduleName, text: &str, home: &Tenant) -> Result<(NewSchedule, bool), Refusal> {
    let mut object = Object::read(text)?;
    // The name may be repeated in the body, as in what was answered; it must be the same.
    if let Some(repeated) = object.get::<String>("name", "a string")
        && repeated != name.as_str()
    {
        object.bad("name", "is not the one in the path");
    }
    // What was answered may be put again.
    for shown in SHOWN {
        object.take(shown);
    }
    let cadence = take_cadence(&mut object);
    let job = object.object("job").map(|mut inner| {
        let job = job::take(&mut inner, home);
        (job, inner.end())
    });
    let job = match job {
        Some((job, ended)) => {
            object.take_in("job", ended);
            job
        }
        None => object.required("job", None),
    };
    let overlap = object.text("overlap", |text| text.parse::<Overlap>()).unwrap_or_default();
    let misfire = object.text("misfire", |text| text.parse::<Misfire>()).unwrap_or_default();
    let limit = object.whole("catchUpLimit");
    // One that does not fit is out of range in any case.
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
            object.bad(&error.field, error.message);
        }
    }
    object.end()?;
    let schedule = schedule.ok_or_else(|| Invalid::from(FieldError::new("cron", "or everySeconds is required")))?;
    Ok((schedule, paused == Some(false)))
}

fn take_cadence(object: &mut Object<'_>) -> Option<Cadence> {
    let cron: Option<String> = object.get("cron", "a string");
    let zone: Option<String> = object.get("timezone", "a string");
    let every = object.seconds("everySeconds");
    match (cron, every) {
        (Some(_), Some(_)) => {
            object.bad("everySeconds", "excludes cron");
            None
        }
        (Some(cron), None) => match Cadence::cron(&cron, zone.as_deref().unwrap_or("UTC")) {
            Ok(cadence) => Some(cadence),
            Err(invalid) => {
                for error in invalid.errors {
                    object.bad(&error.field, error.message);
                }
                None
            }
        },
        (None, Some(interval)) => {
            if zone.is_some_and(|zone| zone != "UTC") {
                object.bad("timezone", "belongs to cron: an interval knows no zone");
            }
            object.keep("everySeconds", Cadence::every(interval))
        }
        (None, None) => {
            if !object.is_bad("everySeconds") {
                object.required::<()>("cron", None);
            }
            None
        }
    }
}

/// A schedule as it stands.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleView {
    /// What it is called.
    #[cfg_attr(feature = "openapi", schema(value_type = ScheduleId))]
    pub name: ScheduleName,
    /// What was asked for.
    #[serde(flatten)]
    pub request: ScheduleRequest,
    /// Where that has led.
    #[serde(flatten)]
    pub standing: ScheduleStanding,
}

/// Where a schedule stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleStanding {
    /// Of one that was just put: `created`, `updated` or `unchanged`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put: Option<String>,
    /// Of one that was just paused or resumed: whether it was not so before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    /// The nominal time that comes next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub next_time: Option<Timestamp>,
    /// The same with its jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub next_fire_at: Option<Timestamp>,
    /// When it last fired.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_fired_at: Option<Timestamp>,
    /// Jobs of it that are not over, as far as they are remembered; in a list, those that may not be.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Id>))]
    pub unfinished_jobs: Vec<JobId>,
    /// When it was first put.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
    /// By which time zones its next time was computed.
    pub tzdb_version: String,
}

// By hand: a payload inside of what is flattened would not come back as it was given.
impl<'de> Deserialize<'de> for ScheduleView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Named {
            name: ScheduleName,
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let Named { name } = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        Ok(Self {
            name,
            request: serde_json::from_str(raw.get()).map_err(D::Error::custom)?,
            standing: serde_json::from_str(raw.get()).map_err(D::Error::custom)?,
        })
    }
}

/// What became of a schedule that was put, in a word.
pub const fn put_word(put: PutResult) -> &'static str {
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
            standing: ScheduleStanding {
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

/// A pause, and why.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PauseRequest {
    /// A remark for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Note>))]
    pub note: Option<String>,
}

/// Reads why a schedule is paused; an empty body says nothing.
pub fn read_pause(text: &str) -> Result<Option<String>, Refusal> {
    let mut object = Object::read(if text.trim().is_empty() { "{}" } else { text })?;
    let note: Option<String> = object.get("note", "a string");
    object.end()?;
    Ok(note)
}

/// Times that are to be made up for.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-08T00:00:00Z", "overlap": "allow"}))))]
pub struct BackfillRequest {
    /// From this time on.
    #[cfg_attr(feature = "openapi", schema(value_type = TimeNearNow))]
    pub from: Timestamp,
    /// Before this time.
    #[cfg_attr(feature = "openapi", schema(value_type = Time))]
    pub to: Timestamp,
    /// What happens while earlier jobs of it are unfinished; as the schedule says, unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<OverlapPolicy>))]
    pub overlap: Option<Overlap>,
    /// Only say what would be done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub dry_run: bool,
}

/// Reads a [`BackfillRequest`]: which times, and whether only to say what would be done.
pub fn read_backfill(text: &str) -> Result<(Backfill, bool), Refusal> {
    let mut object = Object::read(text)?;
    let from = object.time("from");
    let from = object.required("from", from);
    let to = object.time("to");
    let to = object.required("to", to);
    let overlap = object.text("overlap", |text| text.parse::<Overlap>());
    let dry_run = object.get("dryRun", "true or false").unwrap_or_default();
    object.end()?;
    match from.zip(to) {
        Some((from, to)) => Ok((Backfill { from, to, overlap }, dry_run)),
        None => Err(Invalid::from(FieldError::new("from", "is required")).into()),
    }
}

/// How many times were made up for, or would be.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Backfilled {
    /// By which rule for overlaps.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub overlap: Overlap,
    /// So many jobs were created.
    pub fired: usize,
    /// So many times were left out by that rule.
    pub skipped: usize,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// What would be done, of a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<OccurrenceView>>,
}

/// Times that come.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Times {
    /// Nominal times, without jitter.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Time>))]
    pub times: Vec<Timestamp>,
}

/// A line of the ledger.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OccurrenceView {
    /// The time it stands for, or the first of several that were passed over together.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub nominal_time: Timestamp,
    /// What became of it.
    #[cfg_attr(feature = "openapi", schema(value_type = OccurrenceOutcomeSchema))]
    pub outcome: OccurrenceOutcome,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<OccurrenceReason>))]
    pub reason: Option<Reason>,
    /// The job it created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid"))]
    pub job_id: Option<JobId>,
    /// When it fired.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub fired_at: Option<Timestamp>,
    /// The last of several that were passed over together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub until_time: Option<Timestamp>,
    /// How many they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

impl From<Occurrence> for OccurrenceView {
    fn from(line: Occurrence) -> Self {
        let several = line.count > 1;
        Self {
            nominal_time: line.nominal,
            outcome: line.outcome,
            reason: line.reason,
            job_id: line.job,
            fired_at: (line.outcome == OccurrenceOutcome::Fired).then_some(line.at),
            until_time: several.then_some(line.until),
            count: several.then_some(line.count),
        }
    }
}

/// The longest list of times that come.
pub const MAX_TIMES: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Vec<String> {
        let Err(Refusal::Invalid(invalid)) = read(ScheduleName::trusted("s"), text, &Tenant::default()) else {
            panic!("taken: {text}")
        };
        let mut fields: Vec<String> = invalid.errors.into_iter().map(|error| error.field).collect();
        fields.sort_unstable();
        fields
    }

    #[test]
    fn a_schedule_is_written_and_read_alike() {
        let text = r#"{"cron": "0 9 * * *", "timezone": "Europe/Berlin", "job": {"jobType": "report", "payload": {"a": 1.0}},
            "overlap": "buffer_one", "misfire": "catch_up", "catchUpLimit": 7, "jitterSeconds": 1.5,
            "startAt": "2027-01-01T00:00:00Z", "endAt": "2028-01-01T00:00:00Z", "paused": true, "note": "why"}"#;
        let (schedule, _) = read(ScheduleName::trusted("s"), text, &Tenant::default()).unwrap();
        let written = serde_json::to_string(&ScheduleRequest::from(&schedule)).unwrap();
        assert_eq!(read(ScheduleName::trusted("s"), &written, &Tenant::default()), Ok((schedule.clone(), false)));
        let view = ScheduleView::from(&Schedule::new(schedule, "2026-01-01T00:00:00Z".parse().unwrap()));
        let shown = serde_json::to_string(&view).unwrap();
        assert!(shown.contains(r#"{"a": 1.0}"#), "{shown}");
        let again: ScheduleView = serde_json::from_str(&shown).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), shown);
    }

    #[test]
    fn everything_wrong_is_named() {
        assert_eq!(fields("{}"), ["cron", "job"]);
        assert_eq!(
            fields(r#"{"cron": "x", "timezone": "Mars/Olympus", "job": {"queue": "a b"}, "overlap": "y", "x": 1}"#),
            ["cron", "job.jobType", "job.queue", "overlap", "timezone", "x"]
        );
        assert_eq!(fields(r#"{"cron": "@daily", "everySeconds": 5, "job": {"jobType": "t"}}"#), ["everySeconds"]);
        assert_eq!(fields(r#"{"everySeconds": 0.5, "job": {"jobType": "t"}}"#), ["everySeconds"]);
        assert_eq!(
            fields(
                r#"{"everySeconds": 5, "job": {"jobType": "t"}, "startAt": "2027-01-01T00:00:00Z", "endAt": "2026-01-01T00:00:00Z"}"#
            ),
            ["endAt"]
        );
    }
}
