//! `orchestrix jobs cancel`: by id, or whatever matches.

use anyhow::Result;
use clap::Args;
use orchestrix_api::{
    admin::{job::JobDetails, job_state::JobStateView},
    job::{JobStatusView, JobView},
};
use orchestrix_core::{Event, JobId, JobState, JobStatus};

use crate::{
    api::{Api, Request, Seen},
    consent::Consent,
    each::{Fate, each, jobs, rehearse, would_change},
    failure::{Failure, Outcome},
    filter::{self, Filter, find},
    jobs::list,
    output::Output,
};

/// Cancel jobs: waiting ones at once, running ones as soon as their worker hears of it
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  orchestrix jobs cancel 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70
  orchestrix jobs cancel --queue email --state scheduled --dry-run

{}", filter::VARIABLES))]
pub(crate) struct Arguments {
    /// These jobs
    #[arg(value_name = "ID", conflicts_with_all = ["filter", "states", "all"])]
    ids: Vec<JobId>,

    /// Jobs in one of these states; all that are not over unless given
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',', value_parser = filter::states())]
    #[arg(env = "ORCHESTRIX_FILTER_STATE", hide_env = true, help_heading = "Filters")]
    states: Vec<JobState>,

    #[command(flatten)]
    filter: Filter,

    /// All jobs that are not over
    #[arg(long, conflicts_with_all = ["filter", "states"])]
    all: bool,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = list::limit())]
    limit: usize,

    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(arguments: &Arguments, api: &Api, output: &Output) -> Result<Outcome> {
    let Arguments { ids, states, filter, all, limit, consent } = arguments;
    if !all && ids.is_empty() && states.is_empty() && !filter.narrows() {
        return Err(Failure::Usage("which jobs? Give ids, a filter such as --queue, or --all".into()).into());
    }
    // Cancelling again is fine.
    let request = |place: &str, id| Request::post(format!("{place}/{id}/cancel")).repeatable();
    let cancel =
        async |id| api.either::<JobStateView, JobStatusView>(request("/admin/jobs", id), request("/jobs", id)).await;
    if !ids.is_empty() {
        if consent.dry_run {
            return rehearse(ids, output, async |id| look(id, api).await, fate).await;
        }
        return each(ids, output, cancel).await;
    }
    if let Some(over) = states.iter().find(|state| state.is_terminal()) {
        return Err(Failure::Usage(format!("jobs that are {over} cannot be cancelled")).into());
    }
    let unfinished = || JobState::ALL.into_iter().filter(|state| !state.is_terminal()).collect();
    let states: Vec<JobState> = if states.is_empty() { unfinished() } else { states.clone() };
    let found = find(api, list::JOBS, &filter.in_states(&states), None, *limit).await?;
    if consent.dry_run {
        return would_change(&found.items, output);
    }
    if !found.items.is_empty() {
        consent.ask(&format!("{} would be cancelled.", jobs(found.items.len())), "which")?;
    }
    let ids: Vec<JobId> = found.items.iter().map(|job| job.job_id).collect();
    let outcome = each(&ids, output, cancel).await?;
    if found.next_cursor.is_some() {
        output.note("more may match: run it again, or raise --limit");
    }
    Ok(outcome)
}

// Where a job stands, as far as whoever asks may know.
async fn look(id: JobId, api: &Api) -> Result<Seen<JobStateView, JobStatusView>> {
    let request = |place: &str| Request::get(format!("{place}/{id}"));
    Ok(match api.either::<JobDetails, JobView>(request("/admin/jobs"), request("/jobs")).await? {
        Seen::Operator(job) => Seen::Operator(JobStateView::new(id, job.summary.state)),
        Seen::Client(job) => Seen::Client(JobStatusView { job_id: id, status: job.status }),
    })
}

fn fate(job: &Seen<JobStateView, JobStatusView>) -> Fate {
    let over = |word: &str| Fate::Refused(format!("it is {word} and can no longer be cancelled"));
    match job {
        Seen::Operator(JobStateView { state, .. }) => match state.next(Event::Cancel) {
            Ok(JobState::Cancelled) if *state == JobState::Cancelled => Fate::Same,
            Ok(_) => Fate::Changed,
            Err(_) => over(state.as_str()),
        },
        Seen::Client(JobStatusView { status, .. }) => match status {
            JobStatus::Cancelled => Fate::Same,
            JobStatus::Pending | JobStatus::Running => Fate::Changed,
            JobStatus::Completed | JobStatus::Failed => over(&status.as_str().to_lowercase()),
        },
    }
}
