//! `orchestrix schedules occurrences`: what became of each time of a schedule.

use anyhow::Result;
use clap::Args;
use orchestrix_api::schedule::OccurrenceView;
use orchestrix_core::{ScheduleName, Timestamp};

use super::path;
use crate::{
    api::{Api, Request},
    failure::Outcome,
    jobs::list,
    output::{Output, table},
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

pub(crate) async fn run(arguments: &Arguments, api: &Api, output: &Output) -> Result<Outcome> {
    let ledger = Request::get(format!("{}/occurrences", path(&arguments.name)));
    let cursor = arguments.cursor.map(|time| time.to_string());
    let page = api.gather(&ledger, cursor, arguments.limit).await?;
    output.page(&page, text)?;
    Ok(Outcome::DONE)
}

/// Lines as a table.
pub(crate) fn text(lines: &[OccurrenceView]) -> String {
    let row = |line: &OccurrenceView| {
        let none = || "-".to_owned();
        let time = line.nominal_time;
        [
            line.until_time.map_or_else(|| time.to_string(), |until| format!("{time} to {until}")),
            line.count.unwrap_or(1).to_string(),
            line.outcome.to_string(),
            line.reason.map_or_else(none, |reason| reason.to_string()),
            line.job_id.map_or_else(none, |id| id.to_string()),
        ]
    };
    table(["TIME", "COUNT", "OUTCOME", "REASON", "JOB"], lines.iter().map(row))
}
