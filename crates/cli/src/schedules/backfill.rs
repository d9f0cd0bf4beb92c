//! `orchestrix schedules backfill`: creates jobs for past times.

use anyhow::Result;
use clap::Args;
use orchestrix_api::schedule::{BackfillRequest, BackfillResponse};
use orchestrix_core::{Overlap, ScheduleName, Timestamp};
use serde::Serialize;

use super::{occurrences, overlap_parser, path};
use crate::{
    api::{ApiClient, Request},
    error::ExitStatus,
    job_states::count_jobs,
    output::Output,
    times,
};

/// Create jobs for past times of a schedule that did not fire
#[derive(Debug, Args)]
#[command(after_help = "\
Times that have already fired are skipped, so running the same command again creates nothing. All jobs are created at
once; --overlap decides what happens while they overlap: `allow` runs all of them.

Example:
  orchestrix schedules backfill nightly --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z --overlap allow --dry-run

Environment variables of --from, --to and --overlap begin with ORCHESTRIX_BACKFILL_, as in ORCHESTRIX_BACKFILL_FROM.")]
pub(crate) struct Arguments {
    /// The name of the schedule
    name: ScheduleName,

    /// From this time, or from this long ago: 7d
    #[arg(long, value_name = "TIME", value_parser = times::past_time)]
    #[arg(env = "ORCHESTRIX_BACKFILL_FROM", hide_env = true)]
    from: Timestamp,

    /// Up to but excluding this time, or this long ago [default: now]
    #[arg(long, value_name = "TIME", value_parser = times::past_time)]
    #[arg(env = "ORCHESTRIX_BACKFILL_TO", hide_env = true)]
    to: Option<Timestamp>,

    /// What to do while earlier jobs are unfinished [default: the schedule's policy]
    #[arg(long, value_name = "POLICY", value_parser = overlap_parser())]
    #[arg(env = "ORCHESTRIX_BACKFILL_OVERLAP", hide_env = true)]
    overlap: Option<Overlap>,

    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
}

/// The result of a backfill, or of a dry run.
#[derive(Debug, Serialize)]
struct BackfillOutput {
    name: ScheduleName,
    from: Timestamp,
    to: Timestamp,
    #[serde(flatten)]
    result: BackfillResponse,
}

pub(crate) async fn run(arguments: &Arguments, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let Arguments { name, from, to, overlap, dry_run } = arguments;
    let to = to.unwrap_or_else(Timestamp::now);
    let range = BackfillRequest { from: *from, to, overlap: *overlap, dry_run: *dry_run };
    let backfill = Request::post(format!("{}/backfill", path(name))).json(&range)?;
    let backfill = if *dry_run { backfill.idempotent() } else { backfill };
    let document = BackfillOutput { name: name.clone(), from: *from, to, result: api.call(backfill).await? };
    print(&document, output)?;
    Ok(ExitStatus::SUCCESS)
}

fn print(document: &BackfillOutput, output: &Output) -> Result<()> {
    let BackfillResponse { overlap, fired, skipped, dry_run, items } = &document.result;
    let summary = format!("{} {}created", count_jobs(*fired), if *dry_run { "would be " } else { "" });
    match items {
        Some(items) => {
            output.show(document, items, || occurrences::describe(items))?;
            output.note(&format!("dry run: {summary}"));
        }
        None => output.item(document, || format!("{summary}\n"))?,
    }
    if *skipped > 0 {
        output.note(&format!("{skipped} skipped by the overlap policy {overlap}; --overlap allow creates all of them"));
    }
    Ok(())
}
