//! `orchestrix queues`: what waits where, and stopping or resuming it.

use anyhow::Result;
use clap::Subcommand;
use orchestrix_api::admin::queue::{QueueRequest, QueueView};
use orchestrix_core::{JobState, Queue};
use serde::Serialize;

use crate::{
    api::{Api, Request},
    each::Each,
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

/// A queue that was paused or resumed.
#[derive(Debug, Serialize)]
struct Switched {
    name: Queue,
    paused: bool,
}

pub(crate) async fn run(command: Command, api: &Api, output: &Output) -> Result<Outcome> {
    match command {
        Command::List => list(api, output).await,
        Command::Pause { queues } => switch(&queues, true, api, output).await,
        Command::Resume { queues } => switch(&queues, false, api, output).await,
    }
}

async fn list(api: &Api, output: &Output) -> Result<Outcome> {
    let queues = api.gather(&Request::get("/admin/queues"), None, usize::MAX).await?;
    output.page(&queues, |queues| {
        let header = ["QUEUE", "CLAIMS", "PENDING", "RUNNING", "SCHEDULED", "RETRYING", "BLOCKED", "HELD", "OLDEST"];
        table(header, queues.iter().map(row))
    })?;
    Ok(Outcome::DONE)
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

// One that is refused leaves the others standing.
async fn switch(queues: &[Queue], paused: bool, api: &Api, output: &Output) -> Result<Outcome> {
    let each = Each::of("queue", queues, async |name| {
        let put = Request::put(format!("/admin/queues/{name}")).with(&QueueRequest { paused })?;
        let queue: QueueView = api.call(put).await?;
        Ok(Switched { name: queue.name, paused: queue.paused })
    });
    each.await.end(output, |switched| {
        let row = |queue: &Switched| [queue.name.to_string(), standing(queue.paused).into()];
        table(["QUEUE", "CLAIMS"], switched.iter().map(row))
    })
}

const fn standing(paused: bool) -> &'static str {
    if paused { "paused" } else { "open" }
}
