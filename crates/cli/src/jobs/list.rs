//! `orchestrix jobs list`.

use anyhow::Result;
use clap::{Args, builder::TypedValueParser};
use orchestrix_api::admin::job::JobSummaryView;
use orchestrix_core::{JobId, JobState, Timestamp};

use crate::{
    api::Api,
    failure::Outcome,
    filter::{self, Filter, find},
    output::{Output, table},
    times,
};

/// Where all jobs are listed.
pub(crate) const JOBS: &str = "/admin/jobs";

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

pub(crate) async fn run(arguments: &Arguments, api: &Api, output: &Output) -> Result<Outcome> {
    let Arguments { states, filter, part } = arguments;
    let page = find(api, JOBS, &filter.in_states(states), part.cursor, part.limit).await?;
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
    Ok(Outcome::DONE)
}
