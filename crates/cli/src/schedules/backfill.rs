//! `orchestrix schedules backfill`: jobs for times that have passed.

use std::collections::HashSet;

use anyhow::Result;
use clap::Args;
use orchestrix_core::{Overlap, ScheduleName, Timestamp, schedule};
use orchestrix_store::{Backfill, Occurrence, PageRequest, Schedule, Store, StoreError};
use serde::Serialize;

use super::{look_up, occurrences, overlaps, unfinished, view::OccurrenceView};
use crate::{each::jobs, failure::Outcome, output::Output, times};

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
#[serde(rename_all = "camelCase")]
struct Filled {
    name: ScheduleName,
    from: Timestamp,
    to: Timestamp,
    overlap: Overlap,
    fired: usize,
    /// Left out by the rule about overlaps.
    skipped: usize,
    dry_run: bool,
    /// What would be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<OccurrenceView>>,
}

pub(crate) async fn run(arguments: Arguments, store: &dyn Store, output: &Output) -> Result<Outcome> {
    let Arguments { name, from, to, overlap, dry_run } = arguments;
    let to = to.unwrap_or_else(Timestamp::now);
    let range = Backfill { from, to, overlap };
    let schedule = look_up(&name, store).await?;
    let overlap = overlap.unwrap_or(schedule.definition.overlap);
    let planned = plan(&schedule, &range, overlap, store).await?;
    let (fired, items) = match dry_run {
        true => {
            let fired = planned.iter().filter(|line| line.outcome == schedule::Outcome::Fired).count();
            (fired, Some(planned.iter().cloned().map(OccurrenceView::from).collect()))
        }
        false => (store.backfill_schedule(&name, &range).await?, None),
    };
    let skipped = planned.len().saturating_sub(fired);
    let filled = Filled { name, from, to, overlap, fired, skipped, dry_run, items };
    show(&filled, output)?;
    Ok(Outcome::DONE)
}

fn show(filled: &Filled, output: &Output) -> Result<()> {
    let made = format!("{} {}created", jobs(filled.fired), if filled.dry_run { "would be " } else { "" });
    match &filled.items {
        Some(items) => {
            output.show(filled, items, || occurrences::text(items))?;
            output.note(&format!("dry run: {made}"));
        }
        None => output.item(filled, || format!("{made}\n"))?,
    }
    if filled.skipped > 0 {
        let (skipped, overlap) = (filled.skipped, filled.overlap);
        output.note(&format!(
            "{skipped} skipped by the rule for overlaps ({overlap}): --overlap allow creates all of them"
        ));
    }
    Ok(())
}

// What the store would decide now; it decides anew when it is asked to.
async fn plan(schedule: &Schedule, range: &Backfill, overlap: Overlap, store: &dyn Store) -> Result<Vec<Occurrence>> {
    let now = Timestamp::now();
    let mut times = range.until_now(now).map_err(StoreError::from)?.times(schedule).map_err(StoreError::from)?;
    let fired = fired(schedule, range, store).await?;
    times.retain(|time| !fired.contains(time));
    let unfinished = unfinished(schedule, store).await?;
    Ok(schedule.backfill(&times, overlap, &unfinished, now).lines)
}

async fn fired(schedule: &Schedule, range: &Backfill, store: &dyn Store) -> Result<HashSet<Timestamp>> {
    let mut fired = HashSet::new();
    let mut page = PageRequest::after(range.to, PageRequest::<()>::MAX_LIMIT);
    loop {
        let found = store.occurrences(&schedule.definition.name, &page).await?;
        let lines = found.items.iter().filter(|line| line.outcome == schedule::Outcome::Fired);
        fired.extend(lines.map(|line| line.nominal));
        match found.next {
            Some(cursor) if cursor >= range.from => page.cursor = Some(cursor),
            _ => return Ok(fired),
        }
    }
}
