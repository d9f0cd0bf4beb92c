//! `orchestrix jobs list`, and the paging flags of all lists of jobs.

use anyhow::Result;
use clap::{Args, builder::TypedValueParser};
use orchestrix_api::admin::job::JobSummaryView;
use orchestrix_core::{JobId, JobState, Timestamp};

use crate::{
    api::ApiClient,
    error::ExitStatus,
    filter::{self, Filter, find_jobs},
    output::{Output, table},
    times,
};

/// The path of the list of jobs.
pub(crate) const JOBS: &str = "/admin/jobs";

/// List jobs, newest first
#[derive(Debug, Args)]
#[command(after_help = format!("\
Example:
  orchestrix jobs list --state running,retrying --queue email --from 1h

{}", filter::ENV_HELP))]
pub(crate) struct Arguments {
    /// Only jobs in these states
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',', value_parser = filter::state_parser())]
    #[arg(env = "ORCHESTRIX_FILTER_STATE", hide_env = true, help_heading = "Filters")]
    states: Vec<JobState>,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    page: PageArguments,
}

/// The flags that select a page of a list.
#[derive(Debug, Args)]
pub(crate) struct PageArguments {
    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = limit())]
    pub(crate) limit: usize,

    /// Continue after this job: the cursor of the previous list
    #[arg(long, value_name = "ID")]
    pub(crate) cursor: Option<JobId>,
}

/// Parses a limit.
pub(crate) fn limit() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u32).range(1..=1_000_000).map(|limit| limit as usize)
}

pub(crate) async fn run(arguments: &Arguments, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let Arguments { states, filter, page } = arguments;
    let page = find_jobs(api, JOBS, &filter.in_states(states), page.cursor, page.limit).await?;
    let now = Timestamp::now();
    output.page(&page, |jobs| {
        let row = |job: &JobSummaryView| {
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
    Ok(ExitStatus::SUCCESS)
}
