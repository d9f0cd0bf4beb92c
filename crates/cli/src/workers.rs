//! `orchestrix workers`: who works, on what, and which jobs wait for nobody.

use anyhow::{Context, Result};
use clap::Subcommand;
use orchestrix_api::admin::worker::{Directed, LaneView, WorkerView, Workers};
use orchestrix_core::WorkerName;
use serde::Serialize;

use crate::{
    api::{Api, MOST, Request, escaped},
    failure::{self, Outcome},
    output::{Format, Output, table},
    times,
    unserved::nobody_takes,
};

/// Look at workers, let them drain
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show every worker, and the types of jobs that none of them takes
    #[command(after_help = "Example:\n  orchestrix workers list")]
    List,
    /// Tell workers to take nothing new and to end when what they run is done
    #[command(after_help = "Example:\n  orchestrix workers drain worker-1")]
    Drain {
        /// The workers
        #[arg(required = true, value_name = "WORKER")]
        workers: Vec<WorkerName>,
    },
}

/// Workers as one document.
#[derive(Debug, Serialize)]
struct Shown {
    items: Vec<WorkerView>,
    unserved: Vec<LaneView>,
}

pub(crate) async fn run(command: Command, api: &Api, output: &Output) -> Result<Outcome> {
    match command {
        Command::List => list(api, output).await,
        Command::Drain { workers } => drain(&workers, api, output).await,
    }
}

// One that is not known leaves the others standing.
async fn drain(workers: &[WorkerName], api: &Api, output: &Output) -> Result<Outcome> {
    let mut told: Vec<Directed> = Vec::new();
    let mut refused = Vec::new();
    for name in workers {
        // To tell it again is fine.
        let drain = Request::post(format!("/admin/workers/{}/drain", escaped(name.as_str()))).repeatable();
        match api.call(drain).await.with_context(|| format!("worker {name}")) {
            Ok(directed) => told.push(directed),
            Err(error) => refused.push(error),
        }
    }
    if !told.is_empty() || refused.is_empty() {
        let row = |worker: &Directed| [worker.worker_id.to_string(), worker.directive.clone()];
        output.list(&told, || table(["WORKER", "DIRECTIVE"], told.iter().map(row)))?;
    }
    let outcomes: Vec<Outcome> = refused.iter().map(failure::report).collect();
    Ok(outcomes.first().copied().unwrap_or(Outcome::DONE))
}

async fn list(api: &Api, output: &Output) -> Result<Outcome> {
    let shown = gather(api).await?;
    let Shown { items, unserved } = &shown;
    output.show(&shown, items, || {
        let header = ["WORKER", "STATE", "QUEUES", "TYPES", "SLOTS", "FREE", "DIRECTIVE", "STARTED", "SEEN"];
        let mut text = table(header, items.iter().map(row));
        if !unserved.is_empty() {
            text += &format!("\n{}\n", notes(unserved).join("\n"));
        }
        text
    })?;
    if output.format() == Format::Jsonl {
        notes(unserved).iter().for_each(|note| output.note(note));
    }
    Ok(Outcome::DONE)
}

async fn gather(api: &Api) -> Result<Shown> {
    let list = Request::get("/admin/workers");
    let mut part: Workers = api.call(list.part(None, MOST)).await?;
    let mut shown = Shown { items: part.items, unserved: part.unserved };
    while let Some(cursor) = part.next_cursor {
        part = api.call(list.part(Some(&cursor), MOST)).await?;
        shown.items.append(&mut part.items);
    }
    Ok(shown)
}

fn notes(unserved: &[LaneView]) -> Vec<String> {
    unserved.iter().map(nobody_takes).collect()
}

fn row(worker: &WorkerView) -> [String; 9] {
    // By the clock of the database: that of this machine may be another.
    let now = worker.told_at();
    let types = worker.job_types.as_ref().map_or_else(|| "any".into(), |types| brief_list(types));
    [
        worker.worker_id.to_string(),
        worker.state.clone(),
        brief_list(&worker.queues),
        types,
        worker.concurrency.to_string(),
        worker.free_slots.to_string(),
        worker.directive.clone(),
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
