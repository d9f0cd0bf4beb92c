//! `orchestrix jobs`: record jobs, look at them, change their fate.

mod bulk;
mod cancel;
mod enqueue;
mod explain;
mod get;
pub(crate) mod list;
mod logs;
pub(crate) mod request;
pub(crate) mod template;
mod wait;

use anyhow::Result;
use clap::{Args, Subcommand};
use orchestrix_api::{admin::job_state::JobStateView, job::JobStatusView};
use orchestrix_core::JobId;

use crate::{
    api::{Api, Request},
    each::each,
    failure::Outcome,
    output::Output,
};

/// Record jobs, look at them, cancel and retry them
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Enqueue(Box<enqueue::Arguments>),
    /// Show all of one job: payload, result, attempts, errors, what it went through
    #[command(after_help = "Example:\n  orchestrix jobs get 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
    Get {
        /// The job
        id: JobId,
    },
    /// Say why a job is not running, or what became of it
    #[command(after_help = "Example:\n  orchestrix jobs explain 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
    Explain {
        /// The job
        id: JobId,
    },
    List(list::Arguments),
    Cancel(cancel::Arguments),
    Bulk(bulk::Arguments),
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

pub(crate) async fn run(command: Command, api: &Api, output: &Output) -> Result<Outcome> {
    match command {
        Command::Enqueue(arguments) => enqueue::run(*arguments, api, output).await,
        Command::Get { id } => get::run(id, api, output).await,
        Command::Explain { id } => explain::run(id, api, output).await,
        Command::List(arguments) => list::run(&arguments, api, output).await,
        Command::Bulk(arguments) => bulk::run(&arguments, api, output).await,
        Command::Cancel(arguments) => cancel::run(&arguments, api, output).await,
        Command::Retry(Ids { ids }) => {
            let retry = async |id| api.call::<JobStateView>(Request::post(format!("/admin/jobs/{id}/retry"))).await;
            each(&ids, output, retry).await
        }
        Command::Release(Ids { ids }) => {
            let release = async |id| api.call::<JobStatusView>(Request::post(format!("/jobs/{id}/release"))).await;
            each(&ids, output, release).await
        }
        Command::Logs(arguments) => logs::run(&arguments, api, output).await,
        Command::Wait(arguments) => wait::run(&arguments, api, output).await,
    }
}
