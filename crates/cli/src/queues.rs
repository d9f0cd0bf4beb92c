//! `orchestrix queues`: what waits where, and stopping or resuming it.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Subcommand;
use orchestrix_core::{JobState, Queue};
use orchestrix_store::Store;
use serde::Serialize;

use crate::{
    failure::Outcome,
    output::{Output, table},
    times,
};

/// Look at queues, pause and resume them
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what every queue holds
    #[command(after_help = "Example:\n  orchestrix queues list")]
    List,
    /// Stop workers from taking jobs of a queue; what runs goes on
    #[command(after_help = "Example:\n  orchestrix queues pause email")]
    Pause {
        /// The queues
        #[arg(required = true, value_name = "QUEUE")]
        queues: Vec<Queue>,
    },
    /// Let workers take jobs of a queue again
    #[command(after_help = "Example:\n  orchestrix queues resume email")]
    Resume {
        /// The queues
        #[arg(required = true, value_name = "QUEUE")]
        queues: Vec<Queue>,
    },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct QueueView {
    name: Queue,
    paused: bool,
    counts: BTreeMap<JobState, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Switched<'a> {
    name: &'a Queue,
    paused: bool,
}

pub(crate) async fn run(command: Command, store: &dyn Store, output: &Output) -> Result<Outcome> {
    match command {
        Command::List => list(store, output).await?,
        Command::Pause { queues } => {
            for queue in &queues {
                store.pause_queue(queue).await?;
            }
            show_switched(&queues, true, output)?;
        }
        Command::Resume { queues } => {
            for queue in &queues {
                store.resume_queue(queue).await?;
            }
            show_switched(&queues, false, output)?;
        }
    }
    Ok(Outcome::DONE)
}

async fn list(store: &dyn Store, output: &Output) -> Result<()> {
    let depths = store.depths().await?;
    let views: Vec<QueueView> = depths
        .into_iter()
        .map(|depth| QueueView {
            name: depth.queue,
            paused: depth.paused,
            counts: depth.counts,
            oldest_seconds: depth.oldest.map(|oldest| oldest.as_secs_f64()),
        })
        .collect();
    output.list(&views, || {
        let header = ["QUEUE", "CLAIMS", "PENDING", "RUNNING", "SCHEDULED", "RETRYING", "BLOCKED", "HELD", "OLDEST"];
        table(header, views.iter().map(row))
    })
}

fn row(queue: &QueueView) -> [String; 9] {
    let count =
        |states: &[JobState]| states.iter().filter_map(|state| queue.counts.get(state)).sum::<u64>().to_string();
    let oldest = queue.oldest_seconds.map(|seconds| times::brief(std::time::Duration::from_secs_f64(seconds)));
    [
        queue.name.to_string(),
        standing(queue.paused).into(),
        count(&[JobState::Pending]),
        count(&[JobState::Running, JobState::Dispatched]),
        count(&[JobState::Scheduled]),
        count(&[JobState::Retrying]),
        count(&[JobState::Blocked]),
        count(&[JobState::Created]),
        oldest.unwrap_or_else(|| "-".into()),
    ]
}

fn show_switched(queues: &[Queue], paused: bool, output: &Output) -> Result<()> {
    let switched: Vec<Switched<'_>> = queues.iter().map(|name| Switched { name, paused }).collect();
    output.list(&switched, || {
        table(["QUEUE", "CLAIMS"], queues.iter().map(|name| [name.to_string(), standing(paused).into()]))
    })
}

const fn standing(paused: bool) -> &'static str {
    if paused { "paused" } else { "open" }
}
