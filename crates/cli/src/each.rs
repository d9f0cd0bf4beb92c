//! Doing the same to several things, each by itself: one that is refused leaves the others standing.

use std::fmt::Display;

use anyhow::{Context, Result};
use orchestrix_api::{
    admin::{
        job::{JobDetails, JobSummaryView},
        job_state::JobStateView,
    },
    job::JobStatusView,
};
use orchestrix_core::JobId;
use serde::Serialize;

use crate::{
    api::{Api, Request, Seen},
    failure::{self, Failure, Outcome},
    output::{Output, table},
};

/// A job and the word for where it stands: operators are told of states, clients of a status.
pub(crate) trait Stands: Serialize {
    /// What the word is.
    const KIND: &'static str;

    fn id(&self) -> JobId;

    fn word(&self) -> &'static str;

    /// The kind of this one's word, where not all have the same.
    fn kind(&self) -> &'static str {
        Self::KIND
    }
}

impl Stands for JobStateView {
    const KIND: &'static str = "STATE";

    fn id(&self) -> JobId {
        self.job_id
    }

    fn word(&self) -> &'static str {
        self.state.as_str()
    }
}

impl Stands for JobStatusView {
    const KIND: &'static str = "STATUS";

    fn id(&self) -> JobId {
        self.job_id
    }

    fn word(&self) -> &'static str {
        self.status.as_str()
    }
}

impl Stands for Seen<JobStateView, JobStatusView> {
    const KIND: &'static str = JobStateView::KIND;

    fn id(&self) -> JobId {
        match self {
            Self::Operator(job) => job.id(),
            Self::Client(job) => job.id(),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Operator(job) => job.word(),
            Self::Client(job) => job.word(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Operator(_) => JobStateView::KIND,
            Self::Client(_) => JobStatusView::KIND,
        }
    }
}

/// What came of doing the same to several things.
pub(crate) struct Each<T> {
    /// Those it was done to.
    pub(crate) done: Vec<T>,
    refused: Vec<anyhow::Error>,
}

impl<T> Each<T> {
    /// Does `act` to every one; `kind` is what they are called where one is refused.
    pub(crate) async fn of<K: Display>(kind: &str, all: &[K], act: impl AsyncFn(&K) -> Result<T>) -> Self {
        let mut each = Self { done: Vec::new(), refused: Vec::new() };
        for one in all {
            match act(one).await.with_context(|| format!("{kind} {one}")) {
                Ok(done) => each.done.push(done),
                Err(error) => each.refused.push(error),
            }
        }
        each
    }

    /// The same, shown by `view`.
    pub(crate) fn map<V>(self, view: impl FnMut(T) -> V) -> Each<V> {
        Each { done: self.done.into_iter().map(view).collect(), refused: self.refused }
    }

    /// Prints what was done, and reports whoever was refused. The first refusal decides how the command ends.
    pub(crate) fn end(&self, output: &Output, human: impl FnOnce(&[T]) -> String) -> Result<Outcome>
    where
        T: Serialize,
    {
        if !self.done.is_empty() || self.refused.is_empty() {
            output.list(&self.done, || human(&self.done))?;
        }
        let outcomes: Vec<Outcome> = self.refused.iter().map(failure::report).collect();
        Ok(outcomes.first().copied().unwrap_or(Outcome::DONE))
    }
}

/// Does `act` to every job, and prints where they stand then.
pub(crate) async fn each<T: Stands, E: Into<anyhow::Error>>(
    ids: &[JobId],
    output: &Output,
    act: impl AsyncFn(JobId) -> Result<T, E>,
) -> Result<Outcome> {
    let each = Each::of("job", ids, async |id| act(*id).await.map_err(Into::into)).await;
    each.end(output, standings)
}

/// What would become of a job.
pub(crate) enum Fate {
    Changed,
    /// It is as it should be already.
    Same,
    /// It would be refused, for this reason.
    Refused(String),
}

/// Where a job stands, for operators.
pub(crate) async fn standing(id: JobId, api: &Api) -> Result<JobStateView> {
    let job: JobDetails = api.call(Request::get(format!("/admin/jobs/{id}"))).await?;
    Ok(JobStateView::new(id, job.summary.state))
}

/// Shows what would become of these jobs as they stand now, and does nothing to them. Ends as the deed would.
pub(crate) async fn rehearse<T: Stands>(
    ids: &[JobId],
    output: &Output,
    look: impl AsyncFn(JobId) -> Result<T>,
    fate: impl Fn(&T) -> Fate,
) -> Result<Outcome> {
    let each = Each::of("job", ids, async |id| {
        let standing = look(*id).await?;
        match fate(&standing) {
            Fate::Refused(why) => Err(Failure::Conflict(why).into()),
            Fate::Changed => Ok((standing, true)),
            Fate::Same => Ok((standing, false)),
        }
    });
    let each = each.await;
    let changed = each.done.iter().filter(|(_, changed)| *changed).count();
    let outcome = each.map(|(standing, _)| standing).end(output, standings)?;
    output.note(&format!("dry run: {} would be changed", jobs(changed)));
    Ok(outcome)
}

/// Prints where jobs stand.
pub(crate) fn show<T: Stands>(jobs: &[T], output: &Output) -> Result<()> {
    output.list(jobs, || standings(jobs))
}

fn standings<T: Stands>(jobs: &[T]) -> String {
    let row = |job: &T| [job.id().to_string(), job.word().to_owned()];
    let kind = jobs.first().map_or(T::KIND, Stands::kind);
    table(["ID", kind], jobs.iter().map(row))
}

/// The same without a header: scripts take the first word of a line.
pub(crate) fn lines<T: Stands>(jobs: &[T]) -> String {
    jobs.iter().map(|job| format!("{}  {}\n", job.id(), job.word())).collect()
}

/// Shows jobs as they stand, with a word that nothing was done to them.
pub(crate) fn would_change(found: &[JobSummaryView], output: &Output) -> Result<Outcome> {
    let standing: Vec<JobStateView> = found.iter().map(|job| JobStateView::new(job.job_id, job.state)).collect();
    show(&standing, output)?;
    output.note(&format!("dry run: {} would be changed", jobs(standing.len())));
    Ok(Outcome::DONE)
}

/// A number of jobs in words.
pub(crate) fn jobs(count: usize) -> String {
    if count == 1 { "1 job".into() } else { format!("{count} jobs") }
}
