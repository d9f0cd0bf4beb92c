//! `orchestrix queues`: lists, pauses and resumes queues.

use anyhow::Result;
use clap::Subcommand;
use orchestrix_api::admin::queue::{QueueRequest, QueueView};
use orchestrix_core::{JobState, Queue};
use serde::Serialize;

use crate::{
    api::{ApiClient, Request},
    error::ExitStatus,
    output::{Output, table},
    per_item::PerItem,
    times,
};

/// List, pause and resume queues
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List all queues with their jobs by state
    #[command(after_help = "Example:\n  orchestrix queues list")]
    List,
    /// Pause queues: workers claim no more of their jobs; running jobs continue
    #[command(after_help = "Example:\n  orchestrix queues pause email")]
    Pause {
        /// The queues
        #[arg(required = true, value_name = "QUEUE")]
        queues: Vec<Queue>,
    },
    /// Resume paused queues
    #[command(after_help = "Example:\n  orchestrix queues resume email")]
    Resume {
        /// The queues
        #[arg(required = true, value_name = "QUEUE")]
        queues: Vec<Queue>,
    },
}

/// A queue after a pause or a resume.
#[derive(Debug, Serialize)]
struct QueueOutput {
    name: Queue,
    paused: bool,
}

pub(crate) async fn run(command: Command, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    match command {
        Command::List => list(api, output).await,
        Command::Pause { queues } => set_paused(&queues, true, api, output).await,
        Command::Resume { queues } => set_paused(&queues, false, api, output).await,
    }
}

async fn list(api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let queues = api.collect_pages(&Request::get("/admin/queues"), None, usize::MAX).await?;
    output.page(&queues, |queues| {
        let header = ["QUEUE", "CLAIMS", "PENDING", "RUNNING", "SCHEDULED", "RETRYING", "BLOCKED", "HELD", "OLDEST"];
        table(header, queues.iter().map(row))
    })?;
    Ok(ExitStatus::SUCCESS)
}

fn row(queue: &QueueView) -> [String; 9] {
    let count =
        |states: &[JobState]| states.iter().filter_map(|state| queue.counts.get(state)).sum::<u64>().to_string();
    let oldest = queue.oldest_seconds.map(|seconds| times::brief(std::time::Duration::from_secs_f64(seconds)));
    [
        queue.name.to_string(),
        claim_state(queue.paused).into(),
        count(&[JobState::Pending]),
        count(&[JobState::Running, JobState::Dispatched]),
        count(&[JobState::Scheduled]),
        count(&[JobState::Retrying]),
        count(&[JobState::Blocked]),
        count(&[JobState::Created]),
        oldest.unwrap_or_else(|| "-".into()),
    ]
}

async fn set_paused(queues: &[Queue], paused: bool, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let results = PerItem::apply("queue", queues, async |name| {
        let put = Request::put(format!("/admin/queues/{name}")).json(&QueueRequest { paused })?;
        let queue: QueueView = api.call(put).await?;
        Ok(QueueOutput { name: queue.name, paused: queue.paused })
    });
    results.await.print(output, |queues| {
        let row = |queue: &QueueOutput| [queue.name.to_string(), claim_state(queue.paused).into()];
        table(["QUEUE", "CLAIMS"], queues.iter().map(row))
    })
}

const fn claim_state(paused: bool) -> &'static str {
    if paused { "paused" } else { "open" }
}
