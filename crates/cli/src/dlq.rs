//! `orchestrix dlq`: lists, redrives and purges dead jobs.

use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use orchestrix_api::admin::{
    dlq::{MAX_REDRIVE, PurgeRequest, PurgeResponse, RedriveRequest, RedriveResponse},
    filter::{JobCriteria, JobFilterRequest},
    job::JobSummaryView,
    job_state::JobStateView,
};
use orchestrix_core::{JobId, JobState, Timestamp};
use serde::Serialize;

use crate::{
    api::{ApiClient, ApiError, Rejection, Request},
    confirmation::Confirmation,
    error::{CliError, ExitStatus},
    filter::{self, Filter, find_jobs},
    job_states::{self, DryRun, apply_to_jobs, count_jobs, dry_run_jobs, job_state, print_dry_run},
    jobs::list,
    output::{Output, table},
    times,
};

/// List, redrive and purge dead jobs
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List dead jobs, newest first
    #[command(after_help = "Example:\n  orchestrix dlq list --queue email --from 24h")]
    List {
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        page: list::PageArguments,
    },
    /// Redrive dead jobs: run them again, with at least one attempt
    #[command(after_help = format!("\
Example:
  orchestrix dlq redrive --type SEND_EMAIL --dry-run

{}", filter::ENV_HELP))]
    Redrive {
        /// Redrive these jobs
        #[arg(value_name = "ID", conflicts_with = "filter")]
        ids: Vec<JobId>,
        #[command(flatten)]
        filter: Filter,
        /// Redrive all dead jobs
        #[arg(long, conflicts_with_all = ["ids", "filter"])]
        all: bool,
        /// Redrive at most this many
        #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = list::limit())]
        limit: usize,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Delete dead jobs permanently, with their payloads and errors
    #[command(after_help = "Example:\n  orchestrix dlq purge --older-than 30d --dry-run")]
    #[command(group = clap::ArgGroup::new("which").required(true))]
    Purge {
        /// Delete the jobs that died longer ago than this
        #[arg(long, value_name = "DURATION", value_parser = times::duration, group = "which")]
        older_than: Option<Duration>,
        /// Delete all dead jobs
        #[arg(long, group = "which")]
        all: bool,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

pub(crate) async fn run(command: Command, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    match command {
        Command::List { filter, page } => {
            let page = find_jobs(api, DEAD_JOBS, &filter.request(), page.cursor, page.limit).await?;
            output.page(&page, |jobs| {
                let now = Timestamp::now();
                let row = |job: &JobSummaryView| {
                    [
                        job.job_id.to_string(),
                        job.job_type.to_string(),
                        job.queue.to_string(),
                        format!("{}/{}", job.attempts_used, job.max_attempts),
                        job.finished_at.map_or_else(|| "-".into(), |died| times::relative(died, now)),
                        job.reason.clone().unwrap_or_else(|| "-".into()),
                    ]
                };
                table(["ID", "TYPE", "QUEUE", "ATTEMPTS", "DIED", "REASON"], jobs.iter().map(row))
            })?;
            Ok(ExitStatus::SUCCESS)
        }
        Command::Redrive { ids, filter, all, limit, confirmation } => {
            if !all && ids.is_empty() && !filter.is_set() {
                return Err(
                    CliError::Usage("no jobs selected: give ids, a filter such as --queue, or --all".into()).into()
                );
            }
            if ids.is_empty() {
                redrive_matching(&filter.request(), limit, confirmation, api, output).await
            } else if confirmation.dry_run {
                dry_run_jobs(&ids, output, async |id| job_state(id, api).await, |job| predict_redrive(job.state)).await
            } else {
                apply_to_jobs(&ids, output, async |id| redrive_one(id, api).await).await
            }
        }
        Command::Purge { older_than, all: _, confirmation } => {
            purge(older_than.unwrap_or_default(), confirmation, api, output).await
        }
    }
}

// Rejects a job that is not dead: `jobs retry` is for cancelled jobs.
async fn redrive_one(id: JobId, api: &ApiClient) -> Result<JobStateView> {
    let request = RedriveRequest { job_ids: Some(vec![id]), ..RedriveRequest::default() };
    let response: RedriveResponse = api.call(Request::post("/admin/dlq/redrive").json(&request)?).await?;
    match response.refused.into_iter().next() {
        Some(refused) => Err(ApiError::from(Rejection::of_item(refused.code, refused.detail)).into()),
        None => Ok(JobStateView::new(id, JobState::Pending)),
    }
}

fn predict_redrive(state: JobState) -> DryRun {
    match state {
        JobState::Dead => DryRun::Change,
        state => DryRun::Reject(format!("the job is {state}; only dead jobs can be redriven")),
    }
}

/// The path of the list of dead jobs.
const DEAD_JOBS: &str = "/admin/dlq";

async fn redrive_matching(
    filter: &JobFilterRequest,
    limit: usize,
    confirmation: Confirmation,
    api: &ApiClient,
    output: &Output,
) -> Result<ExitStatus> {
    let found = find_jobs(api, DEAD_JOBS, filter, None, limit).await?;
    if confirmation.dry_run {
        return print_dry_run(&found.items, output);
    }
    if !found.items.is_empty() {
        confirmation.require(&format!("{} would be redriven.", count_jobs(found.items.len())), "which")?;
    }
    let mut redriven = Vec::new();
    let mut cursor = None;
    // The cursor moves from the newest to the oldest, so a job that dies again meanwhile is not redriven twice.
    while redriven.len() < found.items.len() {
        let limit = Some((found.items.len() - redriven.len()).min(MAX_REDRIVE));
        let criteria = Some(filter.criteria.clone()).filter(|criteria| *criteria != JobCriteria::default());
        let request = RedriveRequest { all: criteria.is_none(), filter: criteria, job_ids: None, limit, cursor };
        let page: RedriveResponse = api.call(Request::post("/admin/dlq/redrive").json(&request)?).await?;
        redriven.extend(page.retried);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    // RedriveResponse jobs become pending; they may be running by now.
    let states: Vec<JobStateView> = redriven.into_iter().map(|id| JobStateView::new(id, JobState::Pending)).collect();
    job_states::print_states(&states, output)?;
    output.note(&format!("{} redriven", count_jobs(states.len())));
    if found.next_cursor.is_some() {
        output.note("more jobs may match: run the command again, or raise --limit");
    }
    Ok(ExitStatus::SUCCESS)
}

/// The number of jobs that were deleted, or would be.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PurgeOutput {
    count: usize,
    dry_run: bool,
}

async fn purge(
    older_than: Duration,
    confirmation: Confirmation,
    api: &ApiClient,
    output: &Output,
) -> Result<ExitStatus> {
    let body = |dry_run| PurgeRequest { older_than_seconds: older_than.as_secs_f64(), dry_run };
    let request = |dry_run| Request::post("/admin/dlq/purge").json(&body(dry_run));
    let PurgeResponse { count, more } = api.call(request(true)?.idempotent()).await?;
    // The server stops counting at some point.
    let at_least = if more { "at least " } else { "" };
    if confirmation.dry_run {
        let text = format!("{at_least}{} would be deleted\n", count_jobs(count));
        output.item(&PurgeOutput { count, dry_run: true }, || text)?;
        return Ok(ExitStatus::SUCCESS);
    }
    let mut deleted = 0;
    if count > 0 || more {
        confirmation.require(&format!("{at_least}{} would be deleted permanently.", count_jobs(count)), "how many")?;
        loop {
            let step: PurgeResponse = api.call(request(false)?).await?;
            deleted += step.count;
            if !step.more {
                break;
            }
        }
    }
    output.item(&PurgeOutput { count: deleted, dry_run: false }, || format!("{} deleted\n", count_jobs(deleted)))?;
    Ok(ExitStatus::SUCCESS)
}
