//! `orchestrix schedules put`: sets a schedule up, or changes it.

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
    clock::{Clock, times_table},
    next, overlaps, path,
    when::When,
    words::{self, is_paused},
};
use crate::{
    api::{Api, Request},
    failure::{Failure, Outcome},
    jobs::{request, template::Template},
    output::Output,
    times,
};

/// How many of its next times are shown.
const SHOWN: usize = 3;

/// Set a schedule up, or change it; the same again changes nothing
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("due").required(true).args(["cron", "every"]))]
#[command(after_help = "\
A schedule is put as a whole: what is left out has its default. One that is paused stays so until it is resumed.

Examples:
  orchestrix schedules put nightly REPORT --cron '0 9 * * *' --tz Europe/Berlin --payload '{\"kind\": \"daily\"}'
  orchestrix schedules put sweep CLEAN_UP --every 15m --jitter 1m --overlap buffer_one")]
pub(crate) struct Arguments {
    /// What it is called
    name: ScheduleName,

    /// What kind of work each job of it is
    #[arg(value_name = "TYPE")]
    job_type: JobType,

    #[command(flatten)]
    when: When,

    /// What to do while an earlier job of it is unfinished [default: skip]
    #[arg(long, value_name = "POLICY", value_parser = overlaps())]
    overlap: Option<Overlap>,

    /// What to do about times that nobody was there to fire [default: fire_once]
    #[arg(long, value_name = "POLICY", value_parser = misfires())]
    misfire: Option<Misfire>,

    /// How many of those catch_up fires at most [default: 100]
    #[arg(long, value_name = "N")]
    catch_up_limit: Option<u32>,

    /// Spread jobs over so long after their times [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = times::duration)]
    jitter: Option<Duration>,

    /// Nothing before this time
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    start: Option<Timestamp>,

    /// Nothing at or after this time
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    end: Option<Timestamp>,

    /// Set it up, but do not fire it until it is resumed
    #[arg(long)]
    paused: bool,

    /// A remark for people
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Start each job so long after it was created
    #[arg(long, value_name = "DURATION", value_parser = times::duration, help_heading = JOB)]
    delay: Option<Duration>,

    #[command(flatten, next_help_heading = JOB)]
    job: Template,
}

const JOB: &str = "Its jobs";

fn misfires() -> impl TypedValueParser<Value = Misfire> {
    PossibleValuesParser::new(Misfire::ALL.iter().map(|it| it.as_str())).try_map(|word| word.parse::<Misfire>())
}

/// A schedule that was put.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    #[serde(flatten)]
    schedule: ScheduleView,
    next_times: Vec<Timestamp>,
}

pub(crate) async fn run(arguments: Arguments, api: &Api, output: &Output) -> Result<Outcome> {
    let definition = arguments.into_schedule()?;
    let name = &definition.name;
    // Left out, what an operator paused stays so.
    let asked = ScheduleRequest { paused: definition.paused.then_some(true), ..ScheduleRequest::from(&definition) };
    let put = Request::put(path(name)).with(&asked)?;
    let schedule: ScheduleView = api.call(put).await?;
    let next_times = match is_paused(&schedule) {
        true => Vec::new(),
        false => next::upcoming(name, SHOWN, None, api).await?,
    };
    let clock = next::zone_of(&schedule).as_ref().and_then(Clock::of);
    let kept = Kept { schedule, next_times };
    output.item(&kept, || text(&kept, clock.as_ref()))?;
    if is_paused(&kept.schedule) {
        let note = kept.schedule.request.note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
        output.note(&format!("it is paused{note}: `orchestrix schedules resume {name}` lets it go on"));
    } else if kept.next_times.is_empty() {
        output.note("no time is left before its end");
    }
    Ok(Outcome::DONE)
}

impl Arguments {
    fn into_schedule(self) -> Result<NewSchedule> {
        let cadence = self.when.cadence().ok_or_else(|| Failure::Usage("when? Give --cron or --every".into()))?;
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

fn text(kept: &Kept, clock: Option<&Clock>) -> String {
    let ScheduleView { name, request, status: standing } = &kept.schedule;
    let put = standing.put.as_deref().unwrap_or("put");
    let mut text = format!("{name} {put}: {}\n", words::when(request));
    if !kept.next_times.is_empty() {
        text += &format!("\n{}", times_table(&kept.next_times, clock, Timestamp::now()));
    }
    text
}
