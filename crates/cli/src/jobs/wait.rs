//! `orchestrix jobs wait`: until jobs are over, and how they ended.

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use orchestrix_api::{
    admin::job::JobDetails,
    job::{JobStatusView, JobView},
};
use orchestrix_core::{JobId, JobStatus};

use crate::{
    api::{Api, Request},
    each,
    failure::{Failure, Outcome},
    output::Output,
    times,
    unserved::hint,
};

/// How long one request waits for a job to change, and the shortest time between two of them.
const WAIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(200);
/// How long a job may wait before it is worth a look whether anybody would take it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Wait until jobs are over; exit with 0 if all completed, 1 if any died or was cancelled
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  orchestrix jobs wait --timeout 5m 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
pub(crate) struct Arguments {
    /// The jobs
    #[arg(required = true, value_name = "ID")]
    ids: Vec<JobId>,

    /// Give up after so long, with exit code 1
    #[arg(long, value_name = "DURATION", value_parser = times::duration)]
    #[arg(env = "ORCHESTRIX_WAIT_TIMEOUT", hide_env_values = true)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(arguments: &Arguments, api: &Api, output: &Output) -> Result<Outcome> {
    let ends = until_over(&arguments.ids, arguments.timeout, api, output).await?;
    each::show(&ends, output)?;
    Ok(verdict(&ends))
}

/// What a command that waited for these jobs says of them.
pub(crate) fn verdict(ends: &[JobStatusView]) -> Outcome {
    if ends.iter().all(|job| job.status == JobStatus::Completed) { Outcome::DONE } else { Outcome::FAILED }
}

/// Waits until every job is over; answers how each ended, in the order of `ids`.
pub(crate) async fn until_over(
    ids: &[JobId],
    timeout: Option<Duration>,
    api: &Api,
    output: &Output,
) -> Result<Vec<JobStatusView>> {
    let begun = Instant::now();
    let mut ends = Vec::new();
    let mut looked_for_workers = false;
    for id in ids {
        let mut wait = Duration::ZERO;
        loop {
            let asked = Instant::now();
            let job: JobView = api.call(Request::get(format!("/jobs/{id}")).waiting(wait)).await?;
            if job.status.is_terminal() {
                ends.push(JobStatusView { job_id: *id, status: job.status });
                break;
            }
            let waited = begun.elapsed();
            if timeout.is_some_and(|timeout| waited >= timeout) {
                let text = format!("job {id} is still {} after {}", job.status, times::brief(waited));
                return Err(Failure::Failed(text).into());
            }
            if job.status == JobStatus::Pending && waited >= PATIENCE && !looked_for_workers {
                looked_for_workers = true;
                if let Some(hint) = nobody_takes(*id, api).await {
                    output.note(&format!("still waiting: {hint}"));
                }
            }
            // A server that ends, or has too many to wait with, answers before anything has changed.
            if !wait.is_zero() {
                tokio::time::sleep(PAUSE.saturating_sub(asked.elapsed())).await;
            }
            let left = timeout.map_or(WAIT, |timeout| timeout.saturating_sub(begun.elapsed()));
            let patience = if looked_for_workers { WAIT } else { PATIENCE };
            wait = WAIT.min(left).min(patience);
        }
    }
    Ok(ends)
}

// What operators alone may see is left out for others.
async fn nobody_takes(id: JobId, api: &Api) -> Option<String> {
    let job: JobDetails = api.call(Request::get(format!("/admin/jobs/{id}"))).await.ok()?;
    hint(&job.summary, api).await
}
