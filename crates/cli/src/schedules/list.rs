//! `orchestrix schedules list`: lists schedules by name.

use anyhow::Result;
use clap::Args;
use orchestrix_api::schedule::ScheduleView;
use orchestrix_core::{ScheduleName, Timestamp, tzdb_version};
use serde::Serialize;

use super::format;
use crate::{
    api::{ApiClient, Request},
    error::ExitStatus,
    jobs::list,
    output::{Output, Page, table},
    times,
};

/// List schedules by name
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  orchestrix schedules list")]
pub(crate) struct Arguments {
    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = list::limit())]
    limit: usize,

    /// Continue after this schedule: the cursor of the previous list
    #[arg(long, value_name = "NAME")]
    cursor: Option<ScheduleName>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SchedulesOutput {
    #[serde(flatten)]
    page: Page<ScheduleView>,
    /// The version of this program's time zone database.
    tzdb_version: &'static str,
}

pub(crate) async fn run(arguments: &Arguments, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let cursor = arguments.cursor.as_ref().map(ToString::to_string);
    let page = api.collect_pages(&Request::get("/schedules"), cursor, arguments.limit).await?;
    let document = SchedulesOutput { page, tzdb_version: tzdb_version() };
    let Page { items, next_cursor } = &document.page;
    let now = Timestamp::now();
    output.show(&document, items, || {
        let header = ["NAME", "WHEN", "TYPE", "NEXT", "LAST", "STATE", "NOTE"];
        table(header, items.iter().map(|schedule| row(schedule, now)))
    })?;
    output.note_next_page(next_cursor.as_deref());
    Ok(ExitStatus::SUCCESS)
}

fn row(schedule: &ScheduleView, now: Timestamp) -> [String; 7] {
    let none = || "-".to_owned();
    let ScheduleView { name, request, status: standing } = schedule;
    [
        name.to_string(),
        format::cadence(request),
        request.job.job_type.clone(),
        standing.next_time.map_or_else(none, |next| format!("{next} ({})", times::relative(next, now))),
        standing.last_fired_at.map_or_else(none, |last| times::relative(last, now)),
        format::state(schedule).into(),
        request.note.clone().unwrap_or_else(none),
    ]
}
