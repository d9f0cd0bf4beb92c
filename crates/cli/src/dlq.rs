//! `orchestrix dlq`: jobs that failed for good. Look at them, give them another chance, or forget them.

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
    api::{Api, ApiError, Refused, Request},
    consent::Consent,
    each::{self, Fate, each, jobs, rehearse, standing, would_change},
    failure::{Failure, Outcome},
    filter::{self, Filter, find},
    jobs::list,
    output::{Output, table},
    times,
};

/// Look at dead jobs, retry or forget them
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List dead jobs, newest first
    #[command(after_help = "Example:\n  orchestrix dlq list --queue email --from 24h")]
    List {
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        part: list::Part,
    },
    /// Give dead jobs another chance, with at least one attempt left
    #[command(after_help = format!("Example:\n  orchestrix dlq redrive --type SEND_EMAIL --dry-run\n\n{}", filter::VARIABLES))]
    Redrive {
        /// These jobs
        #[arg(value_name = "ID", conflicts_with = "filter")]
        ids: Vec<JobId>,
        #[command(flatten)]
        filter: Filter,
        /// All of them
        #[arg(long, conflicts_with_all = ["ids", "filter"])]
        all: bool,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = list::limit())]
        limit: usize,
        #[command(flatten)]
        consent: Consent,
    },
    /// Forget dead jobs for good, with their payloads and errors
    #[command(after_help = "Example:\n  orchestrix dlq purge --older-than 30d --dry-run")]
    #[command(group = clap::ArgGroup::new("which").required(true))]
    Purge {
        /// Those that died longer ago than this
        #[arg(long, value_name = "DURATION", value_parser = times::duration, group = "which")]
        older_than: Option<Duration>,
        /// All of them
        #[arg(long, group = "which")]
        all: bool,
        #[command(flatten)]
        consent: Consent,
    },
}

pub(crate) async fn run(command: Command, api: &Api, output: &Output) -> Result<Outcome> {
    match command {
        Command::List { filter, part } => {
            let page = find(api, DEAD, &filter.request(), part.cursor, part.limit).await?;
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
            Ok(Outcome::DONE)
        }
        Command::Redrive { ids, filter, all, limit, consent } => {
            if !all && ids.is_empty() && !filter.narrows() {
                return Err(Failure::Usage("which jobs? Give ids, a filter such as --queue, or --all".into()).into());
            }
            if ids.is_empty() {
                redrive(&filter.request(), limit, consent, api, output).await
            } else if consent.dry_run {
                rehearse(&ids, output, async |id| standing(id, api).await, |job| fate(job.state)).await
            } else {
                each(&ids, output, async |id| redrive_one(id, api).await).await
            }
        }
        Command::Purge { older_than, all: _, consent } => {
            purge(older_than.unwrap_or_default(), consent, api, output).await
        }
    }
}

// Only as a dead letter: `jobs retry` is for jobs that were cancelled.
async fn redrive_one(id: JobId, api: &Api) -> Result<JobStateView> {
    let wanted = RedriveRequest { job_ids: Some(vec![id]), ..RedriveRequest::default() };
    let done: RedriveResponse = api.call(Request::post("/admin/dlq/redrive").with(&wanted)?).await?;
    match done.refused.into_iter().next() {
        Some(refused) => Err(ApiError::from(Refused::item(refused.code, refused.detail)).into()),
        None => Ok(JobStateView::new(id, JobState::Pending)),
    }
}

fn fate(state: JobState) -> Fate {
    match state {
        JobState::Dead => Fate::Changed,
        state => Fate::Refused(format!("it is {state}; only dead jobs are redriven")),
    }
}

/// Where dead jobs are listed.
const DEAD: &str = "/admin/dlq";

async fn redrive(
    filter: &JobFilterRequest,
    limit: usize,
    consent: Consent,
    api: &Api,
    output: &Output,
) -> Result<Outcome> {
    let found = find(api, DEAD, filter, None, limit).await?;
    if consent.dry_run {
        return would_change(&found.items, output);
    }
    if !found.items.is_empty() {
        consent.ask(&format!("{} would be retried.", jobs(found.items.len())), "which")?;
    }
    let mut retried = Vec::new();
    let mut cursor = None;
    // From the newest to the oldest: those that die again meanwhile are behind it, and not retried for ever.
    while retried.len() < found.items.len() {
        let limit = Some((found.items.len() - retried.len()).min(MAX_REDRIVE));
        let criteria = Some(filter.criteria.clone()).filter(|criteria| *criteria != JobCriteria::default());
        let wanted = RedriveRequest { all: criteria.is_none(), filter: criteria, job_ids: None, limit, cursor };
        let step: RedriveResponse = api.call(Request::post("/admin/dlq/redrive").with(&wanted)?).await?;
        retried.extend(step.retried);
        cursor = step.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    // What was retried may be running by now; where it went is all that this command knows.
    let standing: Vec<JobStateView> = retried.into_iter().map(|id| JobStateView::new(id, JobState::Pending)).collect();
    each::show(&standing, output)?;
    output.note(&format!("{} retried", jobs(standing.len())));
    if found.next_cursor.is_some() {
        output.note("more may match: run it again, or raise --limit");
    }
    Ok(Outcome::DONE)
}

/// What was forgotten, or would be.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Forgotten {
    count: usize,
    dry_run: bool,
}

async fn purge(older_than: Duration, consent: Consent, api: &Api, output: &Output) -> Result<Outcome> {
    let wanted = |dry_run| PurgeRequest { older_than_seconds: older_than.as_secs_f64(), dry_run };
    let ask = |dry_run| Request::post("/admin/dlq/purge").with(&wanted(dry_run));
    let PurgeResponse { count, more } = api.call(ask(true)?.repeatable()).await?;
    // So many that counting them all would take long.
    let about = if more { "at least " } else { "" };
    if consent.dry_run {
        let text = format!("{about}{} would be forgotten\n", jobs(count));
        output.item(&Forgotten { count, dry_run: true }, || text)?;
        return Ok(Outcome::DONE);
    }
    let mut forgotten = 0;
    if count > 0 || more {
        consent.ask(&format!("{about}{} would be forgotten for good.", jobs(count)), "how many")?;
        loop {
            let step: PurgeResponse = api.call(ask(false)?).await?;
            forgotten += step.count;
            if !step.more {
                break;
            }
        }
    }
    output.item(&Forgotten { count: forgotten, dry_run: false }, || format!("{} forgotten\n", jobs(forgotten)))?;
    Ok(Outcome::DONE)
}
