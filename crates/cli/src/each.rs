//! Doing the same to several jobs, each by itself: one that is refused leaves the others standing.

use anyhow::{Context, Result};
use orchestrix_api::{
    admin::{
        job::{JobDetails, JobItem},
        standing::Standing,
    },
    job::Accepted,
};
use orchestrix_core::JobId;
use serde::Serialize;

use crate::{
    api::{Api, ApiError, Request},
    failure::{self, Outcome},
    output::{Output, table},
};

/// A job and the word for where it stands: operators are told of states, clients of a status.
pub(crate) trait Stands: Serialize {
    /// What the word is.
    const KIND: &'static str;

    fn id(&self) -> JobId;

    fn word(&self) -> &'static str;
}

impl Stands for Standing {
    const KIND: &'static str = "STATE";

    fn id(&self) -> JobId {
        self.job_id
    }

    fn word(&self) -> &'static str {
        self.state.as_str()
    }
}

impl Stands for Accepted {
    const KIND: &'static str = "STATUS";

    fn id(&self) -> JobId {
        self.job_id
    }

    fn word(&self) -> &'static str {
        self.status.as_str()
    }
}

/// Does `act` to every job, prints where they stand then, and reports whoever was refused. The first refusal decides
/// how the command ends.
pub(crate) async fn each<T: Stands>(
    ids: &[JobId],
    output: &Output,
    act: impl AsyncFn(JobId) -> Result<T, ApiError>,
) -> Result<Outcome> {
    let mut done = Vec::new();
    let mut refused = Vec::new();
    for id in ids {
        match act(*id).await.with_context(|| format!("job {id}")) {
            Ok(job) => done.push(job),
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
pub(crate) fn show<T: Stands>(jobs: &[T], output: &Output) -> Result<()> {
    let row = |job: &T| [job.id().to_string(), job.word().to_owned()];
    output.list(jobs, || table(["ID", T::KIND], jobs.iter().map(row)))
}

/// The same without a header: scripts take the first word of a line.
pub(crate) fn lines<T: Stands>(jobs: &[T]) -> String {
    jobs.iter().map(|job| format!("{}  {}\n", job.id(), job.word())).collect()
}

/// The jobs as they stand; an error if there is none of that id.
pub(crate) async fn look_up(ids: &[JobId], api: &Api) -> Result<Vec<JobItem>> {
    let mut found = Vec::new();
    for id in ids {
        let job: JobDetails = api.call(Request::get(format!("/admin/jobs/{id}"))).await?;
        found.push(job.item);
    }
    Ok(found)
}

/// Shows jobs as they stand, with a word that nothing was done to them.
pub(crate) fn would_change(found: &[JobItem], output: &Output) -> Result<Outcome> {
    let standing: Vec<Standing> = found.iter().map(|job| Standing::of(job.job_id, job.state)).collect();
    show(&standing, output)?;
    output.note(&format!("dry run: {} would be changed", jobs(standing.len())));
    Ok(Outcome::DONE)
}

/// A number of jobs in words.
pub(crate) fn jobs(count: usize) -> String {
    if count == 1 { "1 job".into() } else { format!("{count} jobs") }
}
