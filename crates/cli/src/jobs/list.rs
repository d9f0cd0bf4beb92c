//! `orchestrix jobs list`.

use anyhow::Result;
use clap::{Args, builder::TypedValueParser};
use orchestrix_core::{JobId, JobState, Timestamp};
use orchestrix_store::{JobSummary, Page, Store};
use serde::Serialize;

use crate::{
    failure::Outcome,
    filter::{self, Filter, find},
    output::{Format, Output, table},
    times,
    view::SummaryView,
};

/// List jobs, newest first
#[derive(Debug, Args)]
#[command(after_help = format!("Example:\n  orchestrix jobs list --state running,retrying --queue email --from 1h\n\n{}", filter::VARIABLES))]
pub(crate) struct Arguments {
    /// Jobs in one of these states
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',', value_parser = filter::states())]
    #[arg(env = "ORCHESTRIX_FILTER_STATE", hide_env = true, help_heading = "Filters")]
    states: Vec<JobState>,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    part: Part,
}

/// Which part of a list.
#[derive(Debug, Args)]
pub(crate) struct Part {
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = limit())]
    pub(crate) limit: usize,

    /// Go on after this job, as the previous list said
    #[arg(long, value_name = "ID")]
    pub(crate) cursor: Option<JobId>,
}

/// Reads how many jobs.
pub(crate) fn limit() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u32).range(1..=1_000_000).map(|limit| limit as usize)
}

/// Part of a list, as one document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listing {
    items: Vec<SummaryView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<JobId>,
}

impl Listing {
    pub(crate) fn of(page: Page<JobSummary, JobId>) -> Self {
        Self { items: page.items.into_iter().map(SummaryView::from).collect(), next_cursor: page.next }
    }

    /// Prints it, with a word about what it leaves out.
    pub(crate) fn show(&self, output: &Output, human: impl FnOnce(&[SummaryView]) -> String) -> Result<()> {
        output.show(self, &self.items, || human(&self.items))?;
        if let Some(cursor) = self.next_cursor
            && output.format() != Format::Json
        {
            output.note(&format!("there may be more: --cursor {cursor} goes on"));
        }
        Ok(())
    }
}

pub(crate) async fn run(arguments: Arguments, store: &dyn Store, output: &Output) -> Result<Outcome> {
    let Arguments { states, filter, part } = arguments;
    let page = find(store, &filter.in_states(states), part.cursor, part.limit).await?;
    let now = Timestamp::now();
    Listing::of(page).show(output, |jobs| {
        let row = |job: &SummaryView| {
            [
                job.job_id.to_string(),
                job.state.to_string(),
                job.job_type.to_string(),
                job.queue.to_string(),
                job.priority.get().to_string(),
                format!("{}/{}", job.attempts_used, job.max_attempts),
                times::relative(job.created_at, now),
                job.worker_id.as_ref().map_or_else(|| "-".into(), ToString::to_string),
            ]
        };
        table(["ID", "STATE", "TYPE", "QUEUE", "PRIORITY", "ATTEMPTS", "CREATED", "WORKER"], jobs.iter().map(row))
    })?;
    Ok(Outcome::DONE)
}
