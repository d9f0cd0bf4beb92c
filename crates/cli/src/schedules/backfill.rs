//! `orchestrix schedules backfill`: jobs for times that have passed.

use anyhow::Result;
use clap::Args;
use orchestrix_api::schedule::{BackfillRequest, BackfillResponse};
use orchestrix_core::{Overlap, ScheduleName, Timestamp};
use serde::Serialize;

use super::{occurrences, overlaps, path};
use crate::{
    api::{Api, Request},
    each::jobs,
    failure::Outcome,
    output::Output,
    times,
};

/// Create jobs for past times of a schedule that did not fire
#[derive(Debug, Args)]
#[command(after_help = "\
Times that have fired are left out, so the same again does nothing. All jobs are created at once; --overlap says what that
means: `allow` runs all of them.

Example:
  orchestrix schedules backfill nightly --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z --overlap allow --dry-run

The variables of --from, --to and --overlap begin with ORCHESTRIX_BACKFILL_: --from is ORCHESTRIX_BACKFILL_FROM.")]
pub(crate) struct Arguments {
    /// The schedule
    name: ScheduleName,

    /// From this time on, or from as long ago as this: 7d
    #[arg(long, value_name = "TIME", value_parser = times::past_time)]
    #[arg(env = "ORCHESTRIX_BACKFILL_FROM", hide_env = true)]
    from: Timestamp,

    /// Until before this time, or until as long ago as this [default: now]
    #[arg(long, value_name = "TIME", value_parser = times::past_time)]
    #[arg(env = "ORCHESTRIX_BACKFILL_TO", hide_env = true)]
    to: Option<Timestamp>,

    /// What to do while earlier jobs are unfinished [default: as the schedule says]
    #[arg(long, value_name = "POLICY", value_parser = overlaps())]
    #[arg(env = "ORCHESTRIX_BACKFILL_OVERLAP", hide_env = true)]
    overlap: Option<Overlap>,

    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
}

/// What came of it, or would.
#[derive(Debug, Serialize)]
struct Filled {
    name: ScheduleName,
    from: Timestamp,
    to: Timestamp,
    #[serde(flatten)]
    filled: BackfillResponse,
}

pub(crate) async fn run(arguments: &Arguments, api: &Api, output: &Output) -> Result<Outcome> {
    let Arguments { name, from, to, overlap, dry_run } = arguments;
    let to = to.unwrap_or_else(Timestamp::now);
    let range = BackfillRequest { from: *from, to, overlap: *overlap, dry_run: *dry_run };
    let backfill = Request::post(format!("{}/backfill", path(name))).with(&range)?;
    let backfill = if *dry_run { backfill.repeatable() } else { backfill };
    let filled = Filled { name: name.clone(), from: *from, to, filled: api.call(backfill).await? };
    show(&filled, output)?;
    Ok(Outcome::DONE)
}

fn show(document: &Filled, output: &Output) -> Result<()> {
    let BackfillResponse { overlap, fired, skipped, dry_run, items } = &document.filled;
    let made = format!("{} {}created", jobs(*fired), if *dry_run { "would be " } else { "" });
    match items {
        Some(items) => {
            output.show(document, items, || occurrences::text(items))?;
            output.note(&format!("dry run: {made}"));
        }
        None => output.item(document, || format!("{made}\n"))?,
    }
    if *skipped > 0 {
        output.note(&format!(
            "{skipped} skipped by the rule for overlaps ({overlap}): --overlap allow creates all of them"
        ));
    }
    Ok(())
}
