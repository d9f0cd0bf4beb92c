//! `orchestrix workers`: lists and drains workers.

use anyhow::Result;
use clap::Subcommand;
use orchestrix_api::admin::worker::{DrainResponse, LaneView, WorkerView, WorkersResponse};
use orchestrix_core::WorkerName;
use serde::Serialize;

use crate::{
    api::{ApiClient, MAX_PAGE, Request, percent_encode},
    confirmation::Confirmation,
    error::{CliError, ExitStatus},
    no_worker_hint,
    output::{Format, Output, table},
    per_item::PerItem,
    times,
};

/// List and drain workers
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List all workers, and the pending jobs that none of them serves
    #[command(after_help = "Example:\n  orchestrix workers list")]
    List,
    /// Drain workers: they claim no more jobs, and end when their running jobs have finished
    #[command(after_help = "Example:\n  orchestrix workers drain worker-1")]
    Drain {
        /// The names of the workers
        #[arg(required = true, value_name = "WORKER")]
        workers: Vec<WorkerName>,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

/// All workers, and the lanes that none of them serves.
#[derive(Debug, Serialize)]
struct WorkersOutput {
    items: Vec<WorkerView>,
    unserved: Vec<LaneView>,
}

pub(crate) async fn run(command: Command, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    match command {
        Command::List => list(api, output).await,
        Command::Drain { workers, confirmation } if confirmation.dry_run => dry_run(&workers, api, output).await,
        Command::Drain { workers, confirmation } => drain(&workers, confirmation, api, output).await,
    }
}

async fn drain(
    workers: &[WorkerName],
    confirmation: Confirmation,
    api: &ApiClient,
    output: &Output,
) -> Result<ExitStatus> {
    confirmation.require_at_terminal(&format!("{} would drain and end.", count_workers(workers.len())))?;
    let results = PerItem::apply("worker", workers, async |name| {
        // Draining twice is harmless.
        let drain = Request::post(format!("/admin/workers/{}/drain", percent_encode(name.as_str()))).idempotent();
        Ok(api.call::<DrainResponse>(drain).await?)
    });
    results.await.print(output, |workers| {
        let row = |worker: &DrainResponse| [worker.worker_id.to_string(), worker.directive.clone()];
        table(["WORKER", "DIRECTIVE"], workers.iter().map(row))
    })
}

// Shows the workers without draining them.
async fn dry_run(workers: &[WorkerName], api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let known = fetch_workers(api).await?.items;
    let results = PerItem::apply("worker", workers, async |name| {
        let worker = known.iter().find(|worker| worker.worker_id == *name).cloned();
        worker.ok_or_else(|| CliError::NotFound("not found".into()).into())
    });
    let results = results.await;
    let draining = results.succeeded.iter().filter(|worker| worker.directive != "drain").count();
    let status = results.print(output, describe)?;
    output.note(&format!("dry run: {} would drain", count_workers(draining)));
    Ok(status)
}

fn count_workers(count: usize) -> String {
    if count == 1 { "1 worker".into() } else { format!("{count} workers") }
}

async fn list(api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let workers = fetch_workers(api).await?;
    let WorkersOutput { items, unserved } = &workers;
    output.show(&workers, items, || {
        let mut text = describe(items);
        if !unserved.is_empty() {
            text += &format!("\n{}\n", hints(unserved).join("\n"));
        }
        text
    })?;
    if output.format() == Format::Jsonl {
        hints(unserved).iter().for_each(|hint| output.note(hint));
    }
    Ok(ExitStatus::SUCCESS)
}

fn describe(workers: &[WorkerView]) -> String {
    let header = ["WORKER", "STATE", "QUEUES", "TYPES", "SLOTS", "FREE", "DIRECTIVE", "STARTED", "SEEN"];
    table(header, workers.iter().map(row))
}

async fn fetch_workers(api: &ApiClient) -> Result<WorkersOutput> {
    let list = Request::get("/admin/workers");
    let mut page: WorkersResponse = api.call(list.page(None, MAX_PAGE)).await?;
    let mut workers = WorkersOutput { items: page.items, unserved: page.unserved };
    while let Some(cursor) = page.next_cursor {
        page = api.call(list.page(Some(&cursor), MAX_PAGE)).await?;
        workers.items.append(&mut page.items);
    }
    Ok(workers)
}

fn hints(unserved: &[LaneView]) -> Vec<String> {
    unserved.iter().map(no_worker_hint::describe).collect()
}

fn row(worker: &WorkerView) -> [String; 9] {
    // By the database's clock, from which this machine's may differ.
    let now = worker.observed_at();
    let types = worker.job_types.as_ref().map_or_else(|| "any".into(), |types| join_first(types));
    [
        worker.worker_id.to_string(),
        worker.state.clone(),
        join_first(&worker.queues),
        types,
        worker.concurrency.to_string(),
        worker.free_slots.to_string(),
        worker.directive.clone(),
        times::relative(worker.started_at, now),
        times::relative(worker.last_seen_at, now),
    ]
}

// A worker may register a thousand types; the JSON output shows all of them.
fn join_first<T: ToString>(names: &[T]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = names.iter().take(SHOWN).map(ToString::to_string).collect();
    let rest = names.len().saturating_sub(SHOWN);
    if rest == 0 { shown.join(",") } else { format!("{} and {rest} more", shown.join(",")) }
}
