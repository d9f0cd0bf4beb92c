//! `orchestrix schedules next`: the times to come, of a schedule or of an expression that is stored nowhere.

use anyhow::Result;
use clap::{ArgGroup, Args, builder::TypedValueParser};
use orchestrix_core::{ScheduleName, Timestamp, ZoneName, tzdb_version};
use orchestrix_store::{Schedule, Store};
use serde::Serialize;

use super::{
    clock::{Clock, times_table},
    look_up,
    view::zone_of,
    when::When,
};
use crate::{failure::Outcome, output::Output, times};

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
    Some(show(None, zone_of(&cadence), &times, output))
}

pub(crate) async fn run(arguments: &Arguments, store: &dyn Store, output: &Output) -> Result<Outcome> {
    let Some(name) = &arguments.name else {
        // Asked for before the store was opened.
        return run_without_store(arguments, output).unwrap_or(Ok(Outcome::DONE));
    };
    let schedule = look_up(name, store).await?;
    let after = arguments.after.unwrap_or_else(|| counted_from(&schedule));
    let times = schedule.definition.timing().upcoming(after, arguments.count);
    let zone = arguments.when.zone().or_else(|| zone_of(&schedule.definition.cadence));
    let outcome = show(Some(name), zone, &times, output)?;
    if schedule.definition.paused {
        output.note("it is paused: none of these comes before it is resumed");
    } else if times.is_empty() {
        output.note("no time is left before its end");
    }
    Ok(outcome)
}

/// From when on the times of a schedule are still to come.
pub(crate) fn counted_from(schedule: &Schedule) -> Timestamp {
    schedule.counted_from.max(Timestamp::now())
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
