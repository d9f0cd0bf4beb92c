//! `orchestrix schedules put`: creates or replaces a schedule.

use std::time::Duration;

use anyhow::Result;
use clap::{
    ArgGroup, Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use orchestrix_api::schedule::{ScheduleRequest, ScheduleView};
use orchestrix_core::{JobType, Misfire, NewJob, NewSchedule, Overlap, ScheduleName, Timestamp};
use serde::Serialize;

use super::{
    cadence::CadenceArguments,
    format::{self, is_paused},
    next, overlap_parser, path,
    zone_clock::{ZoneClock, times_table},
};
use crate::{
    api::{ApiClient, Request},
    error::{CliError, ExitStatus},
    jobs::{request, template::Template},
    output::Output,
    times,
};

/// The number of next times to show.
const NEXT_TIMES: usize = 3;

/// Create or replace a schedule; running the same command again changes nothing
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("due").required(true).args(["cron", "every"]))]
#[command(after_help = "\
The whole schedule is replaced: flags that are left out have their defaults. A paused schedule stays paused until
it is resumed.

Examples:
  orchestrix schedules put nightly REPORT --cron '0 9 * * *' --tz Europe/Berlin --payload '{\"kind\": \"daily\"}'
  orchestrix schedules put sweep CLEAN_UP --every 15m --jitter 1m --overlap buffer_one")]
pub(crate) struct Arguments {
    /// The name of the schedule
    name: ScheduleName,

    /// The type of its jobs
    #[arg(value_name = "TYPE")]
    job_type: JobType,

    #[command(flatten)]
    cadence: CadenceArguments,

    /// What to do while an earlier job of the schedule is unfinished [default: skip]
    #[arg(long, value_name = "POLICY", value_parser = overlap_parser())]
    overlap: Option<Overlap>,

    /// What to do about times that passed while no leader was running [default: fire_once]
    #[arg(long, value_name = "POLICY", value_parser = misfire_parser())]
    misfire: Option<Misfire>,

    /// The most missed times that catch_up fires [default: 100]
    #[arg(long, value_name = "N")]
    catch_up_limit: Option<u32>,

    /// Delay each job at random by up to this long [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = times::duration)]
    jitter: Option<Duration>,

    /// Do not fire before this time
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    start: Option<Timestamp>,

    /// Do not fire at or after this time
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    end: Option<Timestamp>,

    /// Create the schedule paused
    #[arg(long)]
    paused: bool,

    /// A note
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Start each job this long after its creation
    #[arg(long, value_name = "DURATION", value_parser = times::duration, help_heading = JOB)]
    delay: Option<Duration>,

    #[command(flatten, next_help_heading = JOB)]
    job: Template,
}

const JOB: &str = "Jobs of the schedule";

fn misfire_parser() -> impl TypedValueParser<Value = Misfire> {
    PossibleValuesParser::new(Misfire::ALL.iter().map(|it| it.as_str())).try_map(|word| word.parse::<Misfire>())
}

/// The schedule and its next times.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PutOutput {
    #[serde(flatten)]
    schedule: ScheduleView,
    next_times: Vec<Timestamp>,
}

pub(crate) async fn run(arguments: Arguments, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let definition = arguments.into_schedule()?;
    let name = &definition.name;
    // `paused` is left out unless set, so that a paused schedule stays paused.
    let request = ScheduleRequest { paused: definition.paused.then_some(true), ..ScheduleRequest::from(&definition) };
    let put = Request::put(path(name)).json(&request)?;
    let schedule: ScheduleView = api.call(put).await?;
    let next_times = match is_paused(&schedule) {
        true => Vec::new(),
        false => next::upcoming(name, NEXT_TIMES, None, api).await?,
    };
    let clock = next::zone_of(&schedule).as_ref().and_then(ZoneClock::new);
    let document = PutOutput { schedule, next_times };
    output.item(&document, || text(&document, clock.as_ref()))?;
    if is_paused(&document.schedule) {
        let note = document.schedule.request.note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
        output.note(&format!("the schedule is paused{note}: resume it with `orchestrix schedules resume {name}`"));
    } else if document.next_times.is_empty() {
        output.note("the schedule has ended: no time is left");
    }
    Ok(ExitStatus::SUCCESS)
}

impl Arguments {
    fn into_schedule(self) -> Result<NewSchedule> {
        let cadence =
            self.cadence.cadence().ok_or_else(|| CliError::Usage("no times: give --cron or --every".into()))?;
        let job = NewJob { start: request::start(self.delay, None), ..self.job.into_job(self.job_type)? };
        let default = NewSchedule::new(self.name, cadence, job);
        Ok(NewSchedule {
            overlap: self.overlap.unwrap_or_default(),
            misfire: self.misfire.unwrap_or_default(),
            catch_up_limit: self.catch_up_limit.unwrap_or(default.catch_up_limit),
            jitter: self.jitter.unwrap_or_default(),
            start_at: self.start,
            end_at: self.end,
            paused: self.paused,
            note: self.note,
            ..default
        })
    }
}

fn text(document: &PutOutput, clock: Option<&ZoneClock>) -> String {
    let ScheduleView { name, request, status: standing } = &document.schedule;
    let put = standing.put.as_deref().unwrap_or("put");
    let mut text = format!("{name} {put}: {}\n", format::cadence(request));
    if !document.next_times.is_empty() {
        text += &format!("\n{}", times_table(&document.next_times, clock, Timestamp::now()));
    }
    text
}
