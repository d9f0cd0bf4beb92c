//! `orchestrix jobs`: enqueues, shows, cancels and retries jobs.

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
    api::{ApiClient, Request},
    error::ExitStatus,
    job_states::apply_to_jobs,
    output::Output,
};

/// Enqueue, show, cancel and retry jobs
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Enqueue(Box<enqueue::Arguments>),
    /// Show a job: payload, result, attempts, errors and state changes
    #[command(after_help = "Example:\n  orchestrix jobs get 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
    Get {
        /// The job's id
        id: JobId,
    },
    /// Explain why a job is not running, or how it ended
    #[command(after_help = "Example:\n  orchestrix jobs explain 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
    Explain {
        /// The job's id
        id: JobId,
    },
    List(list::Arguments),
    Cancel(cancel::Arguments),
    Bulk(bulk::Arguments),
    /// Retry dead or cancelled jobs
    #[command(after_help = "Example:\n  orchestrix jobs retry 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
    Retry(Ids),
    /// Release held jobs
    #[command(after_help = "Example:\n  orchestrix jobs release 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
    Release(Ids),
    Logs(logs::Arguments),
    Wait(wait::Arguments),
}

// Not a doc comment: clap would use it as the help of the commands.
#[derive(Debug, Args)]
pub(crate) struct Ids {
    /// The ids of the jobs
    #[arg(required = true, value_name = "ID")]
    ids: Vec<JobId>,
}

pub(crate) async fn run(command: Command, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    match command {
        Command::Enqueue(arguments) => enqueue::run(*arguments, api, output).await,
        Command::Get { id } => get::run(id, api, output).await,
        Command::Explain { id } => explain::run(id, api, output).await,
        Command::List(arguments) => list::run(&arguments, api, output).await,
        Command::Bulk(arguments) => bulk::run(&arguments, api, output).await,
        Command::Cancel(arguments) => cancel::run(&arguments, api, output).await,
        Command::Retry(Ids { ids }) => {
            let retry = async |id| api.call::<JobStateView>(Request::post(format!("/admin/jobs/{id}/retry"))).await;
            apply_to_jobs(&ids, output, retry).await
        }
        Command::Release(Ids { ids }) => {
            let release = async |id| api.call::<JobStatusView>(Request::post(format!("/jobs/{id}/release"))).await;
            apply_to_jobs(&ids, output, release).await
        }
        Command::Logs(arguments) => logs::run(&arguments, api, output).await,
        Command::Wait(arguments) => wait::run(&arguments, api, output).await,
    }
}
