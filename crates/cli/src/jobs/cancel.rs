//! `orchestrix jobs cancel`: by id, or all jobs that match.

use anyhow::Result;
use clap::Args;
use orchestrix_api::{
    admin::{job::JobDetails, job_state::JobStateView},
    job::{JobStatusView, JobView},
};
use orchestrix_core::{Event, JobId, JobState, JobStatus};

use crate::{
    api::{ApiClient, Request, RoleView},
    confirmation::Confirmation,
    error::{CliError, ExitStatus},
    filter::{self, Filter, find_jobs},
    job_states::{DryRun, apply_to_jobs, count_jobs, dry_run_jobs, print_dry_run},
    jobs::list,
    output::Output,
};

/// Cancel jobs: waiting ones at once, running ones at the next heartbeat of their worker
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  orchestrix jobs cancel 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70
  orchestrix jobs cancel --queue email --state scheduled --dry-run

{}", filter::ENV_HELP))]
pub(crate) struct Arguments {
    /// Cancel these jobs
    #[arg(value_name = "ID", conflicts_with_all = ["filter", "states", "all"])]
    ids: Vec<JobId>,

    /// Only jobs in these states [default: all unfinished states]
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',', value_parser = filter::state_parser())]
    #[arg(env = "ORCHESTRIX_FILTER_STATE", hide_env = true, help_heading = "Filters")]
    states: Vec<JobState>,

    #[command(flatten)]
    filter: Filter,

    /// Cancel all unfinished jobs
    #[arg(long, conflicts_with_all = ["filter", "states"])]
    all: bool,

    /// Cancel at most this many
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = list::limit())]
    limit: usize,

    #[command(flatten)]
    confirmation: Confirmation,
}

pub(crate) async fn run(arguments: &Arguments, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let Arguments { ids, states, filter, all, limit, confirmation } = arguments;
    if !all && ids.is_empty() && states.is_empty() && !filter.is_set() {
        return Err(CliError::Usage("no jobs selected: give ids, a filter such as --queue, or --all".into()).into());
    }
    // Cancelling twice is harmless.
    let request = |base: &str, id| Request::post(format!("{base}/{id}/cancel")).idempotent();
    let cancel = async |id| {
        api.call_by_role::<JobStateView, JobStatusView>(request("/admin/jobs", id), request("/jobs", id)).await
    };
    if !ids.is_empty() {
        if confirmation.dry_run {
            return dry_run_jobs(ids, output, async |id| fetch_state(id, api).await, predict_cancel).await;
        }
        return apply_to_jobs(ids, output, cancel).await;
    }
    if let Some(finished) = states.iter().find(|state| state.is_terminal()) {
        return Err(CliError::Usage(format!("--state {finished}: finished jobs cannot be cancelled")).into());
    }
    let unfinished = || JobState::ALL.into_iter().filter(|state| !state.is_terminal()).collect();
    let states: Vec<JobState> = if states.is_empty() { unfinished() } else { states.clone() };
    let found = find_jobs(api, list::JOBS, &filter.in_states(&states), None, *limit).await?;
    if confirmation.dry_run {
        return print_dry_run(&found.items, output);
    }
    if !found.items.is_empty() {
        confirmation.require(&format!("{} would be cancelled.", count_jobs(found.items.len())), "which")?;
    }
    let ids: Vec<JobId> = found.items.iter().map(|job| job.job_id).collect();
    let status = apply_to_jobs(&ids, output, cancel).await?;
    if found.next_cursor.is_some() {
        output.note("more jobs may match: run the command again, or raise --limit");
    }
    Ok(status)
}

// The state of a job, or its status for a client.
async fn fetch_state(id: JobId, api: &ApiClient) -> Result<RoleView<JobStateView, JobStatusView>> {
    let request = |base: &str| Request::get(format!("{base}/{id}"));
    Ok(match api.call_by_role::<JobDetails, JobView>(request("/admin/jobs"), request("/jobs")).await? {
        RoleView::Operator(job) => RoleView::Operator(JobStateView::new(id, job.summary.state)),
        RoleView::Client(job) => RoleView::Client(JobStatusView { job_id: id, status: job.status }),
    })
}

fn predict_cancel(job: &RoleView<JobStateView, JobStatusView>) -> DryRun {
    let reject = |state: &str| DryRun::Reject(format!("the job is {state} and can no longer be cancelled"));
    match job {
        RoleView::Operator(JobStateView { state, .. }) => match state.next(Event::Cancel) {
            Ok(JobState::Cancelled) if *state == JobState::Cancelled => DryRun::NoChange,
            Ok(_) => DryRun::Change,
            Err(_) => reject(state.as_str()),
        },
        RoleView::Client(JobStatusView { status, .. }) => match status {
            JobStatus::Cancelled => DryRun::NoChange,
            JobStatus::Pending | JobStatus::Running => DryRun::Change,
            JobStatus::Completed | JobStatus::Failed => reject(&status.as_str().to_lowercase()),
        },
    }
}
