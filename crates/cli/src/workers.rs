//! `orchestrix workers`: who works, on what, and which jobs wait for nobody.

use anyhow::Result;
use clap::Subcommand;
use orchestrix_api::admin::worker::{DrainResponse, LaneView, WorkerView, WorkersResponse};
use orchestrix_core::WorkerName;
use serde::Serialize;

use crate::{
    api::{Api, MOST, Request, escaped},
    consent::Consent,
    each::Each,
    failure::{Failure, Outcome},
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
        #[command(flatten)]
        consent: Consent,
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
        Command::Drain { workers, consent } if consent.dry_run => rehearse(&workers, api, output).await,
        Command::Drain { workers, consent } => drain(&workers, consent, api, output).await,
    }
}

// One that is not known leaves the others standing.
async fn drain(workers: &[WorkerName], consent: Consent, api: &Api, output: &Output) -> Result<Outcome> {
    consent.confirm(&format!("{} would take nothing new and end.", words(workers.len())))?;
    let each = Each::of("worker", workers, async |name| {
        // To tell it again is fine.
        let drain = Request::post(format!("/admin/workers/{}/drain", escaped(name.as_str()))).repeatable();
        Ok(api.call::<DrainResponse>(drain).await?)
    });
    each.await.end(output, |told| {
        let row = |worker: &DrainResponse| [worker.worker_id.to_string(), worker.directive.clone()];
        table(["WORKER", "DIRECTIVE"], told.iter().map(row))
    })
}

// Shows the workers as they stand, and tells them nothing.
async fn rehearse(workers: &[WorkerName], api: &Api, output: &Output) -> Result<Outcome> {
    let known = gather(api).await?.items;
    let each = Each::of("worker", workers, async |name| {
        let worker = known.iter().find(|worker| worker.worker_id == *name).cloned();
        worker.ok_or_else(|| Failure::NotFound("there is no such worker".into()).into())
    });
    let each = each.await;
    let would = each.done.iter().filter(|worker| worker.directive != "drain").count();
    let outcome = each.end(output, described)?;
    output.note(&format!("dry run: {} would be told to drain", words(would)));
    Ok(outcome)
}

fn words(count: usize) -> String {
    if count == 1 { "1 worker".into() } else { format!("{count} workers") }
}

async fn list(api: &Api, output: &Output) -> Result<Outcome> {
    let shown = gather(api).await?;
    let Shown { items, unserved } = &shown;
    output.show(&shown, items, || {
        let mut text = described(items);
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

fn described(workers: &[WorkerView]) -> String {
    let header = ["WORKER", "STATE", "QUEUES", "TYPES", "SLOTS", "FREE", "DIRECTIVE", "STARTED", "SEEN"];
    table(header, workers.iter().map(row))
}

async fn gather(api: &Api) -> Result<Shown> {
    let list = Request::get("/admin/workers");
    let mut part: WorkersResponse = api.call(list.part(None, MOST)).await?;
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
    let now = worker.observed_at();
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
