//! `orchestrix schedules`: set schedules up, look at them and at what became of their times, operate them.
//!
//! | module | what it owns |
//! |---|---|
//! | `when` | the flags for an expression or an interval, and errors that point at the character |
//! | `put`, `backfill`, `next`, `list`, `get`, `occurrences`, `switch` | the commands; `switch` has pause, resume, trigger and delete |
//! | `view`, `clock` | schedules and times as they are printed |
//!
//! Which times a schedule has, `orchestrix_core::schedule` says; which of them have fired, the store's ledger.

mod backfill;
mod clock;
mod get;
mod list;
mod next;
mod occurrences;
mod put;
mod switch;
mod view;
mod when;

use anyhow::Result;
use clap::{
    Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use orchestrix_core::{JobId, Overlap, ScheduleName};
use orchestrix_store::{Page, PageRequest, Schedule, Store, StoreError};

use crate::{consent::Consent, failure::Outcome, output::Output};

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

pub(crate) async fn run(command: Command, store: &dyn Store, output: &Output) -> Result<Outcome> {
    match command {
        Command::List(arguments) => list::run(arguments, store, output).await,
        Command::Get { name } => get::run(&name, store, output).await,
        Command::Put(arguments) => put::run(*arguments, store, output).await,
        Command::Pause { names, note } => switch::pause(&names, note.as_deref(), store, output).await,
        Command::Resume { names } => switch::resume(&names, store, output).await,
        Command::Trigger { name } => switch::trigger(&name, store, output).await,
        Command::Next(arguments) => next::run(&arguments, store, output).await,
        Command::Backfill(arguments) => backfill::run(arguments, store, output).await,
        Command::Delete { names, consent } => switch::delete(&names, consent, store, output).await,
        Command::Occurrences(arguments) => occurrences::run(arguments, store, output).await,
    }
}

/// Runs a command that asks about no stored schedule; `None` for all others.
pub(crate) fn run_without_store(command: &Command, output: &Output) -> Option<Result<Outcome>> {
    match command {
        Command::Next(arguments) => next::run_without_store(arguments, output),
        _ => None,
    }
}

async fn look_up(name: &ScheduleName, store: &dyn Store) -> orchestrix_store::Result<Schedule> {
    store.schedule(name).await?.ok_or_else(|| StoreError::ScheduleNotFound(name.clone()))
}

/// Those of its jobs that are not finished; overlaps are decided by them.
async fn unfinished(schedule: &Schedule, store: &dyn Store) -> Result<Vec<JobId>> {
    let mut unfinished = Vec::new();
    for id in &schedule.open_jobs {
        if store.summary(*id).await?.is_some_and(|job| !job.state.is_terminal()) {
            unfinished.push(*id);
        }
    }
    Ok(unfinished)
}

/// Up to `limit` items, through as many pages as that takes, and where the rest begins.
async fn gather<T, C>(
    cursor: Option<C>,
    limit: usize,
    read: impl AsyncFn(PageRequest<C>) -> orchestrix_store::Result<Page<T, C>>,
) -> Result<Page<T, C>> {
    let mut found = Page { items: Vec::new(), next: cursor };
    loop {
        let left = (limit - found.items.len()).min(PageRequest::<C>::MAX_LIMIT);
        let page = read(PageRequest { cursor: found.next, limit: left }).await?;
        found.items.extend(page.items);
        found.next = page.next;
        if found.next.is_none() || found.items.len() >= limit {
            return Ok(found);
        }
    }
}

fn overlaps() -> impl TypedValueParser<Value = Overlap> {
    PossibleValuesParser::new(Overlap::ALL.iter().map(|it| it.as_str())).try_map(|word| word.parse::<Overlap>())
}
