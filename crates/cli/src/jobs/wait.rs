//! `orchestrix jobs wait`: until jobs are over, and how they ended.

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use orchestrix_core::{JobId, JobState};
use orchestrix_store::{Store, StoreError};

use crate::{
    each::{self, Standing},
    failure::{Failure, Outcome},
    fleet::{Fleet, nobody_takes},
    output::Output,
    times,
};

/// The shortest and the longest pause between two looks.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(500));
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

pub(crate) async fn run(arguments: &Arguments, store: &dyn Store, output: &Output) -> Result<Outcome> {
    let ends = until_over(&arguments.ids, arguments.timeout, store, output).await?;
    let standing: Vec<Standing> = ends.iter().map(|(id, state)| Standing::of(*id, *state)).collect();
    each::show(&standing, output)?;
    Ok(verdict(&ends))
}

/// What a command that waited for these jobs says of them.
pub(crate) fn verdict(ends: &[(JobId, JobState)]) -> Outcome {
    if ends.iter().all(|(_, state)| *state == JobState::Completed) { Outcome::DONE } else { Outcome::FAILED }
}

/// Waits until every job is over; answers how each ended, in the order of `ids`.
pub(crate) async fn until_over(
    ids: &[JobId],
    timeout: Option<Duration>,
    store: &dyn Store,
    output: &Output,
) -> Result<Vec<(JobId, JobState)>> {
    let begun = Instant::now();
    let mut ends = Vec::new();
    let mut pause = PAUSES.0;
    let mut looked_for_workers = false;
    for id in ids {
        loop {
            let job = store.summary(*id).await?.ok_or(StoreError::JobNotFound(*id))?;
            if job.state.is_terminal() {
                ends.push((*id, job.state));
                break;
            }
            let waited = begun.elapsed();
            if timeout.is_some_and(|timeout| waited >= timeout) {
                let text = format!("job {id} is still {} after {}", job.state, times::brief(waited));
                return Err(Failure::Failed(text).into());
            }
            if job.state == JobState::Pending && waited >= PATIENCE && !looked_for_workers {
                looked_for_workers = true;
                if !Fleet::read(store).await?.takes(&job.queue, &job.job_type) {
                    output.note(&format!("still waiting: {}", nobody_takes(&job.queue, &job.job_type)));
                }
            }
            let left = timeout.map_or(pause, |timeout| timeout.saturating_sub(waited));
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }
    Ok(ends)
}
