//! `orchestrix schedules list`.

use anyhow::Result;
use clap::Args;
use orchestrix_api::schedule::ScheduleView;
use orchestrix_core::{ScheduleName, Timestamp, tzdb_version};
use serde::Serialize;

use super::words;
use crate::{
    api::{Api, Request},
    failure::Outcome,
    jobs::list,
    output::{Output, Page, table},
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
    #[serde(flatten)]
    page: Page<ScheduleView>,
    /// The time zones that this program has.
    tzdb_version: &'static str,
}

pub(crate) async fn run(arguments: &Arguments, api: &Api, output: &Output) -> Result<Outcome> {
    let cursor = arguments.cursor.as_ref().map(ToString::to_string);
    let page = api.gather(&Request::get("/schedules"), cursor, arguments.limit).await?;
    let listing = Listing { page, tzdb_version: tzdb_version() };
    let Page { items, next_cursor } = &listing.page;
    let now = Timestamp::now();
    output.show(&listing, items, || {
        let header = ["NAME", "WHEN", "TYPE", "NEXT", "LAST", "STATE", "NOTE"];
        table(header, items.iter().map(|schedule| row(schedule, now)))
    })?;
    output.rest(next_cursor.as_deref());
    Ok(Outcome::DONE)
}

fn row(schedule: &ScheduleView, now: Timestamp) -> [String; 7] {
    let none = || "-".to_owned();
    let ScheduleView { name, request, status: standing } = schedule;
    [
        name.to_string(),
        words::when(request),
        request.job.job_type.clone(),
        standing.next_time.map_or_else(none, |next| format!("{next} ({})", times::relative(next, now))),
        standing.last_fired_at.map_or_else(none, |last| times::relative(last, now)),
        words::state(schedule).into(),
        request.note.clone().unwrap_or_else(none),
    ]
}
