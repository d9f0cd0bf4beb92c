//! `orchestrix workers`: who works, on what, and which jobs wait for nobody.

use anyhow::Result;
use clap::Subcommand;
use orchestrix_core::{JobType, Queue, Timestamp, WorkerName};
use orchestrix_store::{Queues, Store};
use serde::Serialize;

use crate::{
    failure::Outcome,
    fleet::{Fleet, nobody_takes},
    output::{Format, Output, table},
    times,
};

/// Look at workers
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show every worker, and the types of jobs that none of them takes
    #[command(after_help = "Example:\n  orchestrix workers list")]
    List,
}

/// Lanes that are looked at for jobs that nobody takes.
const MAX_LANES: usize = 1_000;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WorkerView {
    worker_id: WorkerName,
    state: &'static str,
    queues: Vec<String>,
    /// `None` takes any.
    job_types: Option<Vec<JobType>>,
    concurrency: u32,
    free_slots: u32,
    directive: &'static str,
    started_at: Timestamp,
    last_seen_at: Timestamp,
}

/// Jobs that wait for nobody.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Unserved {
    queue: Queue,
    job_type: JobType,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Workers<'a> {
    items: &'a [WorkerView],
    unserved: &'a [Unserved],
}

pub(crate) async fn run(command: Command, store: &dyn Store, output: &Output) -> Result<Outcome> {
    let Command::List = command;
    let fleet = Fleet::read(store).await?;
    let lanes = store.lanes(MAX_LANES).await?;
    let unserved: Vec<Unserved> = lanes
        .into_iter()
        .filter(|(queue, job_type)| !fleet.takes(queue, job_type))
        .map(|(queue, job_type)| Unserved { queue, job_type })
        .collect();
    let workers = views(&fleet);
    output.show(&Workers { items: &workers, unserved: &unserved }, &workers, || {
        let header = ["WORKER", "STATE", "QUEUES", "TYPES", "SLOTS", "FREE", "DIRECTIVE", "STARTED", "SEEN"];
        let mut text = table(header, workers.iter().map(|worker| row(worker, fleet.now)));
        if !unserved.is_empty() {
            text += &format!("\n{}\n", notes(&unserved).join("\n"));
        }
        text
    })?;
    if output.format() == Format::Jsonl {
        notes(&unserved).iter().for_each(|note| output.note(note));
    }
    Ok(Outcome::DONE)
}

fn notes(unserved: &[Unserved]) -> Vec<String> {
    unserved.iter().map(|lane| nobody_takes(&lane.queue, &lane.job_type)).collect()
}

fn views(fleet: &Fleet) -> Vec<WorkerView> {
    let view = |worker: &orchestrix_store::WorkerStatus| WorkerView {
        worker_id: worker.info.name.clone(),
        state: if fleet.is_live(worker) { "live" } else { "silent" },
        queues: match &worker.info.queues {
            Queues::All => vec!["*".into()],
            Queues::Named(names) => names.iter().map(ToString::to_string).collect(),
        },
        job_types: worker.info.job_types.clone(),
        concurrency: worker.info.concurrency,
        free_slots: worker.free_slots,
        directive: worker.directive.as_str(),
        started_at: worker.started_at,
        last_seen_at: worker.last_seen_at,
    };
    fleet.workers.iter().map(view).collect()
}

fn row(worker: &WorkerView, now: Timestamp) -> [String; 9] {
    let types = worker.job_types.as_ref().map_or_else(|| "any".into(), |types| brief_list(types));
    [
        worker.worker_id.to_string(),
        worker.state.into(),
        brief_list(&worker.queues),
        types,
        worker.concurrency.to_string(),
        worker.free_slots.to_string(),
        worker.directive.into(),
        times::relative(worker.started_at, now),
        times::relative(worker.last_seen_at, now),
    ]
}

// A worker may know a thousand types; JSON has them all.
fn brief_list<T: ToString>(names: &[T]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = names.iter().take(SHOWN).map(ToString::to_string).collect();
    let rest = names.len().saturating_sub(SHOWN);
    if rest == 0 { shown.join(",") } else { format!("{} and {rest} more", shown.join(",")) }
}
