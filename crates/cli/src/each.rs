//! Doing the same to several jobs, each by itself: one that is refused leaves the others standing.

use anyhow::{Context, Result};
use orchestrix_core::{JobId, JobState, JobStatus};
use orchestrix_store::{JobSummary, Store, StoreError};
use serde::Serialize;

use crate::{
    failure::{self, Outcome},
    output::{Output, table},
};

/// A job and where it stands now.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Standing {
    pub(crate) job_id: JobId,
    pub(crate) status: JobStatus,
    pub(crate) state: JobState,
}

impl Standing {
    pub(crate) const fn of(id: JobId, state: JobState) -> Self {
        Self { job_id: id, status: state.status(), state }
    }
}

/// Does `act` to every job, prints where they stand then, and reports whoever was refused. The first refusal decides
/// how the command ends.
pub(crate) async fn each(
    ids: &[JobId],
    output: &Output,
    act: impl AsyncFn(JobId) -> orchestrix_store::Result<JobState>,
) -> Result<Outcome> {
    let mut done = Vec::new();
    let mut refused = Vec::new();
    for id in ids {
        match act(*id).await.with_context(|| format!("job {id}")) {
            Ok(state) => done.push(Standing::of(*id, state)),
            Err(error) => refused.push(error),
        }
    }
    if !done.is_empty() || refused.is_empty() {
        show(&done, output)?;
    }
    let outcomes: Vec<Outcome> = refused.iter().map(failure::report).collect();
    Ok(outcomes.first().copied().unwrap_or(Outcome::DONE))
}

/// Prints where jobs stand.
pub(crate) fn show(jobs: &[Standing], output: &Output) -> Result<()> {
    output.list(jobs, || table(["ID", "STATE"], jobs.iter().map(|job| [job.job_id.to_string(), job.state.to_string()])))
}

/// The jobs as they stand; an error if there is none of that id.
pub(crate) async fn look_up(ids: &[JobId], store: &dyn Store) -> Result<Vec<JobSummary>> {
    let mut found = Vec::new();
    for id in ids {
        found.push(store.summary(*id).await?.ok_or(StoreError::JobNotFound(*id))?);
    }
    Ok(found)
}

/// Shows jobs as they stand, with a word that nothing was done to them.
pub(crate) fn would_change(found: &[JobSummary], output: &Output) -> Result<Outcome> {
    let standing: Vec<Standing> = found.iter().map(|job| Standing::of(job.id, job.state)).collect();
    show(&standing, output)?;
    output.note(&format!("dry run: {} would be changed", jobs(standing.len())));
    Ok(Outcome::DONE)
}

/// A number of jobs in words.
pub(crate) fn jobs(count: usize) -> String {
    if count == 1 { "1 job".into() } else { format!("{count} jobs") }
}
