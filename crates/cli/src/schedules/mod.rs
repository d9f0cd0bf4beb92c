//! `orchestrix schedules`: creates, shows and operates schedules.
//!
//! | module | what it owns |
//! |---|---|
//! | `cadence` | the flags for a cron expression or an interval, and errors that point at the character |
//! | `put`, `backfill`, `next`, `list`, `get`, `occurrences` | one command each |
//! | `lifecycle` | pause, resume, trigger and delete |
//! | `format`, `zone_clock` | schedules and times as text |
//!
//! `orchestrix_core::schedule` computes the times of an expression; the API answers everything about a stored
//! schedule.

mod backfill;
mod cadence;
mod format;
mod get;
mod lifecycle;
mod list;
mod next;
mod occurrences;
mod put;
mod zone_clock;

use anyhow::Result;
use clap::{
    Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use orchestrix_api::schedule::ScheduleView;
use orchestrix_core::{Overlap, ScheduleName};

use crate::{
    api::{ApiClient, ApiError, Request},
    confirmation::Confirmation,
    error::ExitStatus,
    output::Output,
};

/// Create, show, pause and trigger schedules
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(list::Arguments),
    /// Show a schedule: its times, policies, job and unfinished jobs
    #[command(after_help = "Example:\n  orchestrix schedules get nightly")]
    Get {
        /// The name of the schedule
        name: ScheduleName,
    },
    Put(Box<put::Arguments>),
    /// Pause schedules; jobs that they have created continue
    #[command(after_help = "Example:\n  orchestrix schedules pause nightly --note 'until the disk is replaced'")]
    Pause {
        /// The names of the schedules
        #[arg(required = true, value_name = "NAME")]
        names: Vec<ScheduleName>,
        /// A note, such as the reason
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Resume paused schedules from now on; times that passed meanwhile do not fire
    #[command(after_help = "Example:\n  orchestrix schedules resume nightly")]
    Resume {
        /// The names of the schedules
        #[arg(required = true, value_name = "NAME")]
        names: Vec<ScheduleName>,
    },
    /// Create one job of a schedule now, also if it is paused or another job is unfinished
    #[command(after_help = "Example:\n  orchestrix schedules trigger nightly")]
    Trigger {
        /// The name of the schedule
        name: ScheduleName,
    },
    Next(next::Arguments),
    Backfill(backfill::Arguments),
    /// Delete schedules and their occurrences; jobs that they have created remain
    #[command(after_help = "Example:\n  orchestrix schedules delete nightly --yes")]
    Delete {
        /// The names of the schedules
        #[arg(required = true, value_name = "NAME")]
        names: Vec<ScheduleName>,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    Occurrences(occurrences::Arguments),
}

impl Command {
    /// Whether the command creates a schedule, and may therefore create the database.
    pub(crate) const fn creates_schedule(&self) -> bool {
        matches!(self, Self::Put(_))
    }
}

pub(crate) async fn run(command: Command, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    match command {
        Command::List(arguments) => list::run(&arguments, api, output).await,
        Command::Get { name } => get::run(&name, api, output).await,
        Command::Put(arguments) => put::run(*arguments, api, output).await,
        Command::Pause { names, note } => lifecycle::pause(&names, note.as_deref(), api, output).await,
        Command::Resume { names } => lifecycle::resume(&names, api, output).await,
        Command::Trigger { name } => lifecycle::trigger(&name, api, output).await,
        Command::Next(arguments) => next::run(&arguments, api, output).await,
        Command::Backfill(arguments) => backfill::run(&arguments, api, output).await,
        Command::Delete { names, confirmation } => lifecycle::delete(&names, confirmation, api, output).await,
        Command::Occurrences(arguments) => occurrences::run(&arguments, api, output).await,
    }
}

/// Runs a command that needs no database; `None` for all others.
pub(crate) fn run_without_store(command: &Command, output: &Output) -> Option<Result<ExitStatus>> {
    match command {
        Command::Next(arguments) => next::run_without_store(arguments, output),
        _ => None,
    }
}

/// The API path of a schedule.
fn path(name: &ScheduleName) -> String {
    format!("/schedules/{name}")
}

async fn fetch(name: &ScheduleName, api: &ApiClient) -> Result<ScheduleView, ApiError> {
    api.call(Request::get(path(name))).await
}

fn overlap_parser() -> impl TypedValueParser<Value = Overlap> {
    PossibleValuesParser::new(Overlap::ALL.iter().map(|it| it.as_str())).try_map(|word| word.parse::<Overlap>())
}
