//! `orchestrix schedules occurrences`: what became of each time of a schedule.

use anyhow::Result;
use clap::Args;
use orchestrix_core::{ScheduleName, Timestamp};
use orchestrix_store::Store;
use serde::Serialize;

use super::{gather, view::OccurrenceView};
use crate::{
    failure::Outcome,
    jobs::list,
    output::{Format, Output, table},
    times,
};

/// Show what became of the times of a schedule, newest first
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  orchestrix schedules occurrences nightly --limit 10")]
pub(crate) struct Arguments {
    /// The schedule
    name: ScheduleName,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = list::limit())]
    limit: usize,

    /// Go on before this time, as the previous list said
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    cursor: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Ledger {
    items: Vec<OccurrenceView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<Timestamp>,
}

pub(crate) async fn run(arguments: Arguments, store: &dyn Store, output: &Output) -> Result<Outcome> {
    let Arguments { name, limit, cursor } = arguments;
    let page = gather(cursor, limit, async |page| store.occurrences(&name, &page).await).await?;
    let items = page.items.into_iter().map(OccurrenceView::from).collect();
    let ledger = Ledger { items, next_cursor: page.next };
    output.show(&ledger, &ledger.items, || text(&ledger.items))?;
    if let Some(cursor) = ledger.next_cursor
        && output.format() != Format::Json
    {
        output.note(&format!("there may be more: --cursor {cursor} goes on"));
    }
    Ok(Outcome::DONE)
}

/// Lines as a table.
pub(crate) fn text(lines: &[OccurrenceView]) -> String {
    let row = |line: &OccurrenceView| {
        let none = || "-".to_owned();
        let time = line.nominal_time;
        [
            line.until_time.map_or_else(|| time.to_string(), |until| format!("{time} to {until}")),
            line.count.to_string(),
            line.outcome.to_string(),
            line.reason.map_or_else(none, |reason| reason.to_string()),
            line.job_id.map_or_else(none, |id| id.to_string()),
        ]
    };
    table(["TIME", "COUNT", "OUTCOME", "REASON", "JOB"], lines.iter().map(row))
}
