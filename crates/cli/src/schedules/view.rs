//! Schedules and lines of their ledgers as they are printed: the fields of `PUT /schedules/{name}`, and where it stands.

use std::{collections::BTreeMap, time::Duration};

use orchestrix_core::{
    Cadence, Cron, JobId, JobType, Json, LimitKey, Misfire, NewJob, Overlap, Priority, Queue, ScheduleName, Start, Tag,
    Tenant, Timestamp, ZoneName,
    schedule::{Outcome, Reason},
};
use orchestrix_store::{Occurrence, Schedule};
use serde::Serialize;

use crate::view::{RetryView, amounts, as_given};

/// A schedule.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScheduleView {
    pub(crate) name: ScheduleName,
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<Cron>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<ZoneName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every_seconds: Option<f64>,
    pub(crate) job: TemplateView,
    pub(crate) overlap: Overlap,
    pub(crate) misfire: Misfire,
    pub(crate) catch_up_limit: u32,
    pub(crate) jitter_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end_at: Option<Timestamp>,
    pub(crate) paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// The nominal time that comes next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_time: Option<Timestamp>,
    /// The same with its jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_fire_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_fired_at: Option<Timestamp>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    /// By which time zones the next time was computed.
    pub(crate) tzdb_version: String,
    #[serde(skip)]
    pub(crate) when: String,
}

/// What a schedule creates: the fields of `POST /jobs`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateView {
    pub(crate) job_type: JobType,
    #[serde(serialize_with = "as_given")]
    pub(crate) payload: Json,
    pub(crate) queue: Queue,
    pub(crate) priority: Priority,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delay_seconds: Option<f64>,
    pub(crate) max_attempts: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_seconds: Option<f64>,
    lease_seconds: f64,
    retry: RetryView,
    pub(crate) tenant: Tenant,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) concurrency_key: Option<LimitKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_limit_key: Option<LimitKey>,
    pub(crate) resources: BTreeMap<LimitKey, f64>,
    pub(crate) tags: Vec<Tag>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correlation_id: Option<String>,
    pub(crate) hold: bool,
}

/// A line of a ledger.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OccurrenceView {
    pub(crate) nominal_time: Timestamp,
    /// The last of several that were passed over together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until_time: Option<Timestamp>,
    pub(crate) count: u64,
    pub(crate) outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job_id: Option<JobId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fired_at: Option<Timestamp>,
}

impl ScheduleView {
    /// Whether it may fire, in one word.
    pub(crate) const fn state(&self) -> &'static str {
        match (self.paused, self.next_time) {
            (true, _) => "paused",
            (false, Some(_)) => "active",
            (false, None) => "ended",
        }
    }
}

impl From<Schedule> for ScheduleView {
    fn from(schedule: Schedule) -> Self {
        let definition = schedule.definition;
        let when = when(&definition.cadence);
        let (cron, timezone, every_seconds) = match definition.cadence {
            Cadence::Cron { cron, zone } => (Some(cron), Some(zone), None),
            Cadence::Every { interval } => (None, None, Some(interval.as_secs_f64())),
        };
        Self {
            name: definition.name,
            cron,
            timezone,
            every_seconds,
            job: TemplateView::from(definition.job),
            overlap: definition.overlap,
            misfire: definition.misfire,
            catch_up_limit: definition.catch_up_limit,
            jitter_seconds: definition.jitter.as_secs_f64(),
            start_at: definition.start_at,
            end_at: definition.end_at,
            paused: definition.paused,
            note: definition.note,
            next_time: schedule.next_nominal,
            next_fire_at: schedule.next_fire_at,
            last_fired_at: schedule.last_fired_at,
            created_at: schedule.created_at,
            updated_at: schedule.updated_at,
            tzdb_version: schedule.tzdb,
            when,
        }
    }
}

impl From<NewJob> for TemplateView {
    fn from(job: NewJob) -> Self {
        Self {
            job_type: job.job_type,
            payload: job.payload,
            queue: job.queue,
            priority: job.priority,
            delay_seconds: match job.start {
                Start::After(delay) => Some(delay.as_secs_f64()),
                // No schedule says at which time its jobs start; see `NewSchedule::validate`.
                Start::Now | Start::At(_) => None,
            },
            max_attempts: job.max_attempts,
            timeout_seconds: job.timeout.map(|timeout| timeout.as_secs_f64()),
            lease_seconds: job.lease.as_secs_f64(),
            retry: RetryView::from(job.retry),
            tenant: job.tenant,
            concurrency_key: job.concurrency_key,
            rate_limit_key: job.rate_limit_key,
            resources: amounts(&job.resources),
            tags: job.tags,
            correlation_id: job.correlation_id,
            hold: job.hold,
        }
    }
}

impl From<Occurrence> for OccurrenceView {
    fn from(line: Occurrence) -> Self {
        Self {
            nominal_time: line.nominal,
            until_time: (line.until != line.nominal).then_some(line.until),
            count: line.count,
            outcome: line.outcome,
            reason: line.reason,
            job_id: line.job,
            fired_at: (line.outcome == Outcome::Fired).then_some(line.at),
        }
    }
}

/// The zone that times of a cadence are about.
pub(crate) const fn zone_of(cadence: &Cadence) -> Option<&ZoneName> {
    match cadence {
        Cadence::Cron { zone, .. } => Some(zone),
        Cadence::Every { .. } => None,
    }
}

fn when(cadence: &Cadence) -> String {
    match cadence {
        Cadence::Cron { cron, zone } => format!("{cron} {zone}"),
        Cadence::Every { interval } => format!("every {}", exact(*interval)),
    }
}

/// A duration as it would be given on the command line.
pub(crate) fn exact(duration: Duration) -> String {
    let (mut text, mut left) = (String::new(), duration.as_secs());
    for (unit, seconds) in [("d", 86_400), ("h", 3_600), ("m", 60)] {
        if left >= seconds {
            text += &format!("{}{unit}", left / seconds);
            left %= seconds;
        }
    }
    let rest = Duration::new(left, duration.subsec_nanos());
    if text.is_empty() || !rest.is_zero() {
        text += &format!("{}s", rest.as_secs_f64());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times;

    #[test]
    fn a_duration_is_shown_as_it_is_given() {
        for text in ["15m", "1d", "1h30m", "1m30s", "1.5s", "1d1s", "0s", "366d"] {
            assert_eq!(exact(times::duration(text).unwrap()), text);
        }
        assert_eq!(exact(Duration::from_secs(90_061)), "1d1h1m1s");
    }
}
