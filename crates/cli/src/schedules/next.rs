//! `orchestrix schedules next`: the next times of a schedule, or of an expression that is not stored.

use anyhow::Result;
use clap::{ArgGroup, Args, builder::TypedValueParser};
use orchestrix_api::schedule::ScheduleView;
use orchestrix_core::{Cadence, ScheduleName, Timestamp, ZoneName, tzdb_version};
use serde::Serialize;

use super::{
    cadence::CadenceArguments,
    fetch,
    format::is_paused,
    path,
    zone_clock::{ZoneClock, times_table},
};
use crate::{
    api::{ApiClient, Request},
    error::ExitStatus,
    output::Output,
    times,
};

/// Show the next times of a schedule, or of an expression
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("whose").required(true).args(["name", "cron", "every"]))]
#[command(after_help = "\
An expression or an interval needs no database. With NAME, --tz sets the time zone in which the times are shown.

Examples:
  orchestrix schedules next nightly -n 5
  orchestrix schedules next --cron '30 2 * * *' --tz America/New_York --after 2026-03-07T00:00:00Z")]
pub(crate) struct Arguments {
    /// The name of the schedule
    name: Option<ScheduleName>,

    #[command(flatten)]
    cadence: CadenceArguments,

    /// Show this many times
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = count())]
    count: usize,

    /// Show the times after this one [default: now]
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    after: Option<Timestamp>,
}

fn count() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u32).range(1..=1_000).map(|count| count as usize)
}

/// The times as one JSON document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TimesOutput<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a ScheduleName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<&'a ZoneName>,
    times: &'a [Timestamp],
    #[serde(skip_serializing_if = "Option::is_none")]
    local_times: Option<Vec<String>>,
    tzdb_version: &'static str,
}

/// One time as a JSON line.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TimeOutput {
    time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_time: Option<String>,
}

/// Shows the times of an expression or an interval; `None` for a stored schedule.
pub(crate) fn run_without_store(arguments: &Arguments, output: &Output) -> Option<Result<ExitStatus>> {
    let cadence = arguments.cadence.cadence()?;
    let after = arguments.after.unwrap_or_else(Timestamp::now);
    let times: Vec<Timestamp> = cadence.after(after).take(arguments.count).collect();
    let zone = match &cadence {
        Cadence::Cron { zone, .. } => Some(zone),
        Cadence::Every { .. } => None,
    };
    Some(print(None, zone, &times, output))
}

pub(crate) async fn run(arguments: &Arguments, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let Some(name) = &arguments.name else {
        // Already handled before the database was opened.
        return run_without_store(arguments, output).unwrap_or(Ok(ExitStatus::SUCCESS));
    };
    let schedule = fetch(name, api).await?;
    let times = upcoming(name, arguments.count, arguments.after, api).await?;
    let stored = zone_of(&schedule);
    let status = print(Some(name), arguments.cadence.zone().or(stored.as_ref()), &times, output)?;
    if is_paused(&schedule) {
        output.note("the schedule is paused: it does not fire until it is resumed");
    } else if times.is_empty() {
        output.note("the schedule has ended: no time is left");
    }
    Ok(status)
}

/// The next times of a schedule, from now or after a given time.
pub(crate) async fn upcoming(
    name: &ScheduleName,
    count: usize,
    after: Option<Timestamp>,
    api: &ApiClient,
) -> Result<Vec<Timestamp>> {
    let next = Request::get(format!("{}/next", path(name))).query("count", count);
    let next = match after {
        Some(after) => next.query("after", after),
        None => next,
    };
    Ok(api.call::<orchestrix_api::schedule::UpcomingTimesResponse>(next).await?.times)
}

/// The time zone of a schedule.
pub(crate) fn zone_of(schedule: &ScheduleView) -> Option<ZoneName> {
    schedule.request.timezone.as_ref().and_then(|name| ZoneName::new(name).ok())
}

fn print(
    name: Option<&ScheduleName>,
    zone: Option<&ZoneName>,
    times: &[Timestamp],
    output: &Output,
) -> Result<ExitStatus> {
    let clock = zone.and_then(ZoneClock::new);
    let local = |time: &Timestamp| clock.as_ref().map(|clock| clock.iso(*time));
    let document = TimesOutput {
        name,
        timezone: zone,
        times,
        local_times: clock.is_some().then(|| times.iter().filter_map(local).collect()),
        tzdb_version: tzdb_version(),
    };
    let lines: Vec<TimeOutput> = times.iter().map(|time| TimeOutput { time: *time, local_time: local(time) }).collect();
    output.show(&document, &lines, || times_table(times, clock.as_ref(), Timestamp::now()))?;
    Ok(ExitStatus::SUCCESS)
}
