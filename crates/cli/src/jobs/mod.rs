//! `orchestrix jobs`: record jobs, look at them, change their fate.

mod cancel;
mod enqueue;
mod get;
pub(crate) mod list;
mod logs;
pub(crate) mod request;
pub(crate) mod template;
mod wait;

use anyhow::Result;
use clap::{Args, Subcommand};
use orchestrix_core::JobId;
use orchestrix_store::Store;

use crate::{each::each, failure::Outcome, output::Output};

/// Record jobs, look at them, cancel and retry them
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Enqueue(Box<enqueue::Arguments>),
    /// Show all of one job: payload, result, attempts, errors
    #[command(after_help = "Example:\n  orchestrix jobs get 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
    Get {
        /// The job
        id: JobId,
    },
    List(list::Arguments),
    Cancel(cancel::Arguments),
    /// Give dead or cancelled jobs another chance
    #[command(after_help = "Example:\n  orchestrix jobs retry 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
    Retry(Ids),
    /// Let held jobs go
    #[command(after_help = "Example:\n  orchestrix jobs release 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
    Release(Ids),
    Logs(logs::Arguments),
    Wait(wait::Arguments),
}

// Which jobs; a doc comment here would be their help.
#[derive(Debug, Args)]
pub(crate) struct Ids {
    /// The jobs
    #[arg(required = true, value_name = "ID")]
    ids: Vec<JobId>,
}

pub(crate) async fn run(command: Command, store: &dyn Store, output: &Output) -> Result<Outcome> {
    match command {
        Command::Enqueue(arguments) => enqueue::run(*arguments, store, output).await,
        Command::Get { id } => get::run(id, store, output).await,
        Command::List(arguments) => list::run(arguments, store, output).await,
        Command::Cancel(arguments) => cancel::run(arguments, store, output).await,
        Command::Retry(Ids { ids }) => each(&ids, output, async |id| store.retry(id).await).await,
        Command::Release(Ids { ids }) => each(&ids, output, async |id| store.release_hold(id).await).await,
        Command::Logs(arguments) => logs::run(&arguments, store, output).await,
        Command::Wait(arguments) => wait::run(&arguments, store, output).await,
    }
}
