//! `orchestrix jobs wait`: waits until jobs have finished.

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use orchestrix_api::{
    admin::job::JobDetails,
    job::{JobStatusView, JobView},
};
use orchestrix_core::{JobId, JobStatus};

use crate::{
    api::{ApiClient, Request},
    error::{CliError, ExitStatus},
    job_states, no_worker_hint,
    output::Output,
    times,
};

/// The duration of one long poll, and the shortest time between two of them.
const LONG_POLL: Duration = Duration::from_secs(30);
const MIN_INTERVAL: Duration = Duration::from_millis(200);
/// How long a job may be pending before a hint is shown if no worker serves it.
const HINT_AFTER: Duration = Duration::from_secs(2);

/// Wait until jobs have finished; exit with 0 if all completed, else with 1
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  orchestrix jobs wait --timeout 5m 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
pub(crate) struct Arguments {
    /// The ids of the jobs
    #[arg(required = true, value_name = "ID")]
    ids: Vec<JobId>,

    /// Give up after this long, with exit code 1
    #[arg(long, value_name = "DURATION", value_parser = times::duration)]
    #[arg(env = "ORCHESTRIX_WAIT_TIMEOUT", hide_env_values = true)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(arguments: &Arguments, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let jobs = wait_until_finished(&arguments.ids, arguments.timeout, api, output).await?;
    job_states::print_states(&jobs, output)?;
    Ok(exit_status(&jobs))
}

/// The exit code of a command that waited for these jobs.
pub(crate) fn exit_status(jobs: &[JobStatusView]) -> ExitStatus {
    if jobs.iter().all(|job| job.status == JobStatus::Completed) { ExitStatus::SUCCESS } else { ExitStatus::FAILED }
}

/// Waits until every job has finished. Returns their final status, in the order of `ids`.
pub(crate) async fn wait_until_finished(
    ids: &[JobId],
    timeout: Option<Duration>,
    api: &ApiClient,
    output: &Output,
) -> Result<Vec<JobStatusView>> {
    let started = Instant::now();
    let mut finished = Vec::new();
    let mut hint_shown = false;
    for id in ids {
        let mut wait = Duration::ZERO;
        loop {
            let sent = Instant::now();
            let job: JobView = api.call(Request::get(format!("/jobs/{id}")).long_poll(wait)).await?;
            if job.status.is_terminal() {
                finished.push(JobStatusView { job_id: *id, status: job.status });
                break;
            }
            let waited = started.elapsed();
            if timeout.is_some_and(|timeout| waited >= timeout) {
                let text = format!("job {id} is still {} after {}", job.status, times::brief(waited));
                return Err(CliError::Failed(text).into());
            }
            if job.status == JobStatus::Pending && waited >= HINT_AFTER && !hint_shown {
                hint_shown = true;
                if let Some(hint) = fetch_hint(*id, api).await {
                    output.note(&format!("still waiting: {hint}"));
                }
            }
            // A server that is draining, or has too many long polls, answers before anything has changed.
            if !wait.is_zero() {
                tokio::time::sleep(MIN_INTERVAL.saturating_sub(sent.elapsed())).await;
            }
            let left = timeout.map_or(LONG_POLL, |timeout| timeout.saturating_sub(started.elapsed()));
            let until_hint = if hint_shown { LONG_POLL } else { HINT_AFTER };
            wait = LONG_POLL.min(left).min(until_hint);
        }
    }
    Ok(finished)
}

// `None` for clients, who may not list workers.
async fn fetch_hint(id: JobId, api: &ApiClient) -> Option<String> {
    let job: JobDetails = api.call(Request::get(format!("/admin/jobs/{id}"))).await.ok()?;
    no_worker_hint::for_job(&job.summary, api).await
}
