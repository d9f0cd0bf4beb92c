//! `orchestrix schedules`: set schedules up, look at them and at what became of their times, operate them.
//!
//! | module | what it owns |
//! |---|---|
//! | `when` | the flags for an expression or an interval, and errors that point at the character |
//! | `put`, `backfill`, `next`, `list`, `get`, `occurrences`, `switch` | the commands; `switch` has pause, resume, trigger and delete |
//! | `words`, `clock` | schedules and times as they are printed |
//!
//! Which times an expression has, `orchestrix_core::schedule` says; all that is about a stored schedule, the API.

mod backfill;
mod clock;
mod get;
mod list;
mod next;
mod occurrences;
mod put;
mod switch;
mod when;
mod words;

use anyhow::Result;
use clap::{
    Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use orchestrix_api::schedule::ScheduleView;
use orchestrix_core::{Overlap, ScheduleName};

use crate::{
    api::{Api, ApiError, Request},
    consent::Consent,
    failure::Outcome,
    output::Output,
};

/// Set up what recurs, look at it, pause and trigger it
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    List(list::Arguments),
    /// Show all of one schedule: when, what, its policies, what is unfinished
    #[command(after_help = "Example:\n  orchestrix schedules get nightly")]
    Get {
        /// The schedule
        name: ScheduleName,
    },
    Put(Box<put::Arguments>),
    /// Stop schedules, until they are resumed; jobs that they created go on
    #[command(after_help = "Example:\n  orchestrix schedules pause nightly --note 'until the disk is replaced'")]
    Pause {
        /// The schedules
        #[arg(required = true, value_name = "NAME")]
        names: Vec<ScheduleName>,
        /// Why, for whoever looks at it next
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Let paused schedules go on from now; what passed meanwhile is not made up for
    #[command(after_help = "Example:\n  orchestrix schedules resume nightly")]
    Resume {
        /// The schedules
        #[arg(required = true, value_name = "NAME")]
        names: Vec<ScheduleName>,
    },
    /// Create one job of a schedule now, whether or not it is paused or another one runs
    #[command(after_help = "Example:\n  orchestrix schedules trigger nightly")]
    Trigger {
        /// The schedule
        name: ScheduleName,
    },
    Next(next::Arguments),
    Backfill(backfill::Arguments),
    /// Forget schedules and what became of their times; jobs that they created stay
    #[command(after_help = "Example:\n  orchestrix schedules delete nightly --yes")]
    Delete {
        /// The schedules
        #[arg(required = true, value_name = "NAME")]
        names: Vec<ScheduleName>,
        #[command(flatten)]
        consent: Consent,
    },
    Occurrences(occurrences::Arguments),
}

impl Command {
    /// Whether it sets something up, and so may begin with an empty database.
    pub(crate) const fn records(&self) -> bool {
        matches!(self, Self::Put(_))
    }
}

pub(crate) async fn run(command: Command, api: &Api, output: &Output) -> Result<Outcome> {
    match command {
        Command::List(arguments) => list::run(&arguments, api, output).await,
        Command::Get { name } => get::run(&name, api, output).await,
        Command::Put(arguments) => put::run(*arguments, api, output).await,
        Command::Pause { names, note } => switch::pause(&names, note.as_deref(), api, output).await,
        Command::Resume { names } => switch::resume(&names, api, output).await,
        Command::Trigger { name } => switch::trigger(&name, api, output).await,
        Command::Next(arguments) => next::run(&arguments, api, output).await,
        Command::Backfill(arguments) => backfill::run(&arguments, api, output).await,
        Command::Delete { names, consent } => switch::delete(&names, consent, api, output).await,
        Command::Occurrences(arguments) => occurrences::run(&arguments, api, output).await,
    }
}

/// Runs a command that asks about no stored schedule; `None` for all others.
pub(crate) fn run_without_store(command: &Command, output: &Output) -> Option<Result<Outcome>> {
    match command {
        Command::Next(arguments) => next::run_without_store(arguments, output),
        _ => None,
    }
}

/// The path of a schedule.
fn path(name: &ScheduleName) -> String {
    format!("/schedules/{name}")
}

async fn look_up(name: &ScheduleName, api: &Api) -> Result<ScheduleView, ApiError> {
    api.call(Request::get(path(name))).await
}

fn overlaps() -> impl TypedValueParser<Value = Overlap> {
    PossibleValuesParser::new(Overlap::ALL.iter().map(|it| it.as_str())).try_map(|word| word.parse::<Overlap>())
}
