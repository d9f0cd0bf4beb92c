//! `orchestrix schedules list`.

use anyhow::Result;
use clap::Args;
use orchestrix_core::{ScheduleName, Timestamp, tzdb_version};
use orchestrix_store::Store;
use serde::Serialize;

use super::{gather, view::ScheduleView};
use crate::{
    failure::Outcome,
    jobs::list,
    output::{Format, Output, table},
    times,
};

/// List schedules by name
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  orchestrix schedules list")]
pub(crate) struct Arguments {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = list::limit())]
    limit: usize,

    /// Go on after this schedule, as the previous list said
    #[arg(long, value_name = "NAME")]
    cursor: Option<ScheduleName>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    items: Vec<ScheduleView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<ScheduleName>,
    /// The time zones that this program has.
    tzdb_version: &'static str,
}

pub(crate) async fn run(arguments: Arguments, store: &dyn Store, output: &Output) -> Result<Outcome> {
    let Arguments { limit, cursor } = arguments;
    let page = gather(cursor, limit, async |page| store.schedules(&page).await).await?;
    let items = page.items.into_iter().map(ScheduleView::from).collect();
    let listing = Listing { items, next_cursor: page.next, tzdb_version: tzdb_version() };
    let now = Timestamp::now();
    output.show(&listing, &listing.items, || {
        let header = ["NAME", "WHEN", "TYPE", "NEXT", "LAST", "STATE", "NOTE"];
        table(header, listing.items.iter().map(|schedule| row(schedule, now)))
    })?;
    if let Some(cursor) = &listing.next_cursor
        && output.format() != Format::Json
    {
        output.note(&format!("there may be more: --cursor {cursor} goes on"));
    }
    Ok(Outcome::DONE)
}

fn row(schedule: &ScheduleView, now: Timestamp) -> [String; 7] {
    let none = || "-".to_owned();
    [
        schedule.name.to_string(),
        schedule.when.clone(),
        schedule.job.job_type.to_string(),
        schedule.next_time.map_or_else(none, |next| format!("{next} ({})", times::relative(next, now))),
        schedule.last_fired_at.map_or_else(none, |last| times::relative(last, now)),
        schedule.state().into(),
        schedule.note.clone().unwrap_or_else(none),
    ]
}
