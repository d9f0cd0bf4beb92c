//! `orchestrix schedules next`: the times to come, of a schedule or of an expression that is stored nowhere.

use anyhow::Result;
use clap::{ArgGroup, Args, builder::TypedValueParser};
use orchestrix_api::schedule::ScheduleView;
use orchestrix_core::{Cadence, ScheduleName, Timestamp, ZoneName, tzdb_version};
use serde::Serialize;

use super::{
    clock::{Clock, times_table},
    look_up, path,
    when::When,
    words::is_paused,
};
use crate::{
    api::{Api, Request},
    failure::Outcome,
    output::Output,
    times,
};

/// Show when a schedule is due next, or when an expression would be
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("whose").required(true).args(["name", "cron", "every"]))]
#[command(after_help = "\
An expression or an interval needs no database. With NAME, --tz says on whose clocks to show the times.

Examples:
  orchestrix schedules next nightly -n 5
  orchestrix schedules next --cron '30 2 * * *' --tz America/New_York --after 2026-03-07T00:00:00Z")]
pub(crate) struct Arguments {
    /// The schedule
    name: Option<ScheduleName>,

    #[command(flatten)]
    when: When,

    /// How many of its times
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = count())]
    count: usize,

    /// Those after this time [default: now]
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    after: Option<Timestamp>,
}

fn count() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u32).range(1..=1_000).map(|count| count as usize)
}

/// Times as one document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Times<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a ScheduleName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<&'a ZoneName>,
    times: &'a [Timestamp],
    #[serde(skip_serializing_if = "Option::is_none")]
    local_times: Option<Vec<String>>,
    tzdb_version: &'static str,
}

/// One of them on a line of its own.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Time {
    time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_time: Option<String>,
}

/// Shows the times of an expression or an interval; `None` if the question is about a stored schedule.
pub(crate) fn run_without_store(arguments: &Arguments, output: &Output) -> Option<Result<Outcome>> {
    let cadence = arguments.when.cadence()?;
    let after = arguments.after.unwrap_or_else(Timestamp::now);
    let times: Vec<Timestamp> = cadence.after(after).take(arguments.count).collect();
    let zone = match &cadence {
        Cadence::Cron { zone, .. } => Some(zone),
        Cadence::Every { .. } => None,
    };
    Some(show(None, zone, &times, output))
}

pub(crate) async fn run(arguments: &Arguments, api: &Api, output: &Output) -> Result<Outcome> {
    let Some(name) = &arguments.name else {
        // Asked for before anything was opened.
        return run_without_store(arguments, output).unwrap_or(Ok(Outcome::DONE));
    };
    let schedule = look_up(name, api).await?;
    let times = upcoming(name, arguments.count, arguments.after, api).await?;
    let stored = zone_of(&schedule);
    let outcome = show(Some(name), arguments.when.zone().or(stored.as_ref()), &times, output)?;
    if is_paused(&schedule) {
        output.note("it is paused: none of these comes before it is resumed");
    } else if times.is_empty() {
        output.note("no time is left before its end");
    }
    Ok(outcome)
}

/// The times of a schedule that come, or those after a given one.
pub(crate) async fn upcoming(
    name: &ScheduleName,
    count: usize,
    after: Option<Timestamp>,
    api: &Api,
) -> Result<Vec<Timestamp>> {
    let next = Request::get(format!("{}/next", path(name))).query("count", count);
    let next = match after {
        Some(after) => next.query("after", after),
        None => next,
    };
    Ok(api.call::<orchestrix_api::schedule::UpcomingTimesResponse>(next).await?.times)
}

/// The zone that the times of a schedule are about.
pub(crate) fn zone_of(schedule: &ScheduleView) -> Option<ZoneName> {
    schedule.request.timezone.as_ref().and_then(|name| ZoneName::new(name).ok())
}

fn show(name: Option<&ScheduleName>, zone: Option<&ZoneName>, times: &[Timestamp], output: &Output) -> Result<Outcome> {
    let clock = zone.and_then(Clock::of);
    let local = |time: &Timestamp| clock.as_ref().map(|clock| clock.exact(*time));
    let document = Times {
        name,
        timezone: zone,
        times,
        local_times: clock.is_some().then(|| times.iter().filter_map(local).collect()),
        tzdb_version: tzdb_version(),
    };
    let lines: Vec<Time> = times.iter().map(|time| Time { time: *time, local_time: local(time) }).collect();
    output.show(&document, &lines, || times_table(times, clock.as_ref(), Timestamp::now()))?;
    Ok(Outcome::DONE)
}
