//! `orchestrix schedules occurrences`: lists the occurrences of a schedule.

use anyhow::Result;
use clap::Args;
use orchestrix_api::schedule::OccurrenceView;
use orchestrix_core::{ScheduleName, Timestamp};

use super::path;
use crate::{
    api::{ApiClient, Request},
    error::ExitStatus,
    jobs::list,
    output::{Output, table},
    times,
};

/// List the occurrences of a schedule, newest first: whether each time fired, and its job
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  orchestrix schedules occurrences nightly --limit 10")]
pub(crate) struct Arguments {
    /// The name of the schedule
    name: ScheduleName,

    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = list::limit())]
    limit: usize,

    /// Continue before this time: the cursor of the previous list
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    cursor: Option<Timestamp>,
}

pub(crate) async fn run(arguments: &Arguments, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let list = Request::get(format!("{}/occurrences", path(&arguments.name)));
    let cursor = arguments.cursor.map(|time| time.to_string());
    let page = api.collect_pages(&list, cursor, arguments.limit).await?;
    output.page(&page, describe)?;
    Ok(ExitStatus::SUCCESS)
}

/// Occurrences as a table.
pub(crate) fn describe(occurrences: &[OccurrenceView]) -> String {
    let row = |occurrence: &OccurrenceView| {
        let none = || "-".to_owned();
        let time = occurrence.nominal_time;
        [
            occurrence.until_time.map_or_else(|| time.to_string(), |until| format!("{time} to {until}")),
            occurrence.count.unwrap_or(1).to_string(),
            occurrence.outcome.to_string(),
            occurrence.reason.map_or_else(none, |reason| reason.to_string()),
            occurrence.job_id.map_or_else(none, |id| id.to_string()),
        ]
    };
    table(["TIME", "COUNT", "OUTCOME", "REASON", "JOB"], occurrences.iter().map(row))
}
