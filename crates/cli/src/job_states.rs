//! Printing the states of jobs, and applying an action to several jobs or showing what it would do.

use anyhow::Result;
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
    api::{ApiClient, Request, RoleView},
    error::{CliError, ExitStatus},
    output::{Output, table},
    per_item::PerItem,
};

/// A job's id and its state, for operators, or its status, for clients.
pub(crate) trait JobStateRow: Serialize {
    /// The column's header if there are no rows.
    const HEADER: &'static str;

    fn id(&self) -> JobId;

    /// The state or the status.
    fn state(&self) -> &'static str;

    /// The column's header for this row.
    fn header(&self) -> &'static str {
        Self::HEADER
    }
}

impl JobStateRow for JobStateView {
    const HEADER: &'static str = "STATE";

    fn id(&self) -> JobId {
        self.job_id
    }

    fn state(&self) -> &'static str {
        self.state.as_str()
    }
}

impl JobStateRow for JobStatusView {
    const HEADER: &'static str = "STATUS";

    fn id(&self) -> JobId {
        self.job_id
    }

    fn state(&self) -> &'static str {
        self.status.as_str()
    }
}

impl JobStateRow for RoleView<JobStateView, JobStatusView> {
    const HEADER: &'static str = JobStateView::HEADER;

    fn id(&self) -> JobId {
        match self {
            Self::Operator(job) => job.id(),
            Self::Client(job) => job.id(),
        }
    }

    fn state(&self) -> &'static str {
        match self {
            Self::Operator(job) => JobStateRow::state(job),
            Self::Client(job) => JobStateRow::state(job),
        }
    }

    fn header(&self) -> &'static str {
        match self {
            Self::Operator(_) => JobStateView::HEADER,
            Self::Client(_) => JobStatusView::HEADER,
        }
    }
}

/// Applies `action` to every job and prints their states.
pub(crate) async fn apply_to_jobs<T: JobStateRow, E: Into<anyhow::Error>>(
    ids: &[JobId],
    output: &Output,
    action: impl AsyncFn(JobId) -> Result<T, E>,
) -> Result<ExitStatus> {
    let results = PerItem::apply("job", ids, async |id| action(*id).await.map_err(Into::into)).await;
    results.print(output, states_table)
}

/// What an action would do to a job.
pub(crate) enum DryRun {
    Change,
    /// The job is already in the target state.
    NoChange,
    /// The action would be rejected, for this reason.
    Reject(String),
}

/// The state of a job, for operators.
pub(crate) async fn job_state(id: JobId, api: &ApiClient) -> Result<JobStateView> {
    let job: JobDetails = api.call(Request::get(format!("/admin/jobs/{id}"))).await?;
    Ok(JobStateView::new(id, job.summary.state))
}

/// Shows what an action would do to these jobs, without doing it. Exits as the action would.
pub(crate) async fn dry_run_jobs<T: JobStateRow>(
    ids: &[JobId],
    output: &Output,
    fetch: impl AsyncFn(JobId) -> Result<T>,
    predict: impl Fn(&T) -> DryRun,
) -> Result<ExitStatus> {
    let results = PerItem::apply("job", ids, async |id| {
        let job = fetch(*id).await?;
        match predict(&job) {
            DryRun::Reject(reason) => Err(CliError::Conflict(reason).into()),
            DryRun::Change => Ok((job, true)),
            DryRun::NoChange => Ok((job, false)),
        }
    });
    let results = results.await;
    let changed = results.succeeded.iter().filter(|(_, changed)| *changed).count();
    let status = results.map(|(job, _)| job).print(output, states_table)?;
    output.note(&format!("dry run: {} would be changed", count_jobs(changed)));
    Ok(status)
}

/// Prints the states of jobs.
pub(crate) fn print_states<T: JobStateRow>(jobs: &[T], output: &Output) -> Result<()> {
    output.list(jobs, || states_table(jobs))
}

fn states_table<T: JobStateRow>(jobs: &[T]) -> String {
    let row = |job: &T| [job.id().to_string(), job.state().to_owned()];
    let header = jobs.first().map_or(T::HEADER, JobStateRow::header);
    table(["ID", header], jobs.iter().map(row))
}

/// The states of jobs without a header, so that a script can take the first word of each line.
pub(crate) fn state_lines<T: JobStateRow>(jobs: &[T]) -> String {
    jobs.iter().map(|job| format!("{}  {}\n", job.id(), job.state())).collect()
}

/// Prints the jobs that an action would change, without doing it.
pub(crate) fn print_dry_run(jobs: &[JobSummaryView], output: &Output) -> Result<ExitStatus> {
    let states: Vec<JobStateView> = jobs.iter().map(|job| JobStateView::new(job.job_id, job.state)).collect();
    print_states(&states, output)?;
    output.note(&format!("dry run: {} would be changed", count_jobs(states.len())));
    Ok(ExitStatus::SUCCESS)
}

/// "1 job", "2 jobs".
pub(crate) fn count_jobs(count: usize) -> String {
    if count == 1 { "1 job".into() } else { format!("{count} jobs") }
}
