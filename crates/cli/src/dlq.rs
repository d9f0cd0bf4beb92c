//! `orchestrix dlq`: jobs that failed for good. Look at them, give them another chance, or forget them.

use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use orchestrix_core::{JobId, JobState, Timestamp};
use orchestrix_store::{Fence, JobFilter, JobSummary, PageRequest, Retention, Store, housekeeping::MAX_SWEEP};
use serde::Serialize;

use crate::{
    consent::Consent,
    each::{self, Standing, each, jobs, look_up, would_change},
    failure::{Failure, Outcome},
    filter::{self, Filter, find},
    jobs::list::{self, Listing},
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

pub(crate) async fn run(command: Command, store: &dyn Store, output: &Output) -> Result<Outcome> {
    match command {
        Command::List { filter, part } => {
            let page = find(store, &dead(filter), part.cursor, part.limit).await?;
            Listing::of(page).show(output, |jobs| {
                let now = Timestamp::now();
                let row = |job: &crate::view::SummaryView| {
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
                redrive(&dead(filter), limit, consent, store, output).await
            } else if consent.dry_run {
                would_change(&look_up(&ids, store).await?, output)
            } else {
                each(&ids, output, async |id| store.retry(id).await).await
            }
        }
        Command::Purge { older_than, all: _, consent } => {
            purge(older_than.unwrap_or_default(), consent, store, output).await
        }
    }
}

fn dead(filter: Filter) -> JobFilter {
    filter.in_states(vec![JobState::Dead])
}

async fn redrive(
    filter: &JobFilter,
    limit: usize,
    consent: Consent,
    store: &dyn Store,
    output: &Output,
) -> Result<Outcome> {
    let found = find(store, filter, None, limit).await?;
    if consent.dry_run {
        return would_change(&found.items, output);
    }
    if !found.items.is_empty() {
        consent.ask(&format!("{} would be retried.", jobs(found.items.len())))?;
    }
    let mut retried = Vec::new();
    while retried.len() < found.items.len() {
        let step = (found.items.len() - retried.len()).min(PageRequest::<JobId>::MAX_LIMIT);
        let ids = store.retry_many(filter, step).await?;
        if ids.is_empty() {
            break;
        }
        retried.extend(ids);
    }
    // What was retried may be running by now; where it went is all that this command knows.
    let standing: Vec<Standing> = retried.into_iter().map(|id| Standing::of(id, JobState::Pending)).collect();
    each::show(&standing, output)?;
    output.note(&format!("{} retried", jobs(standing.len())));
    if found.next.is_some() {
        output.note("more may match: run it again, or raise --limit");
    }
    Ok(Outcome::DONE)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Purged {
    /// How many were forgotten, or would be.
    count: usize,
    dry_run: bool,
}

async fn purge(older_than: Duration, consent: Consent, store: &dyn Store, output: &Output) -> Result<Outcome> {
    let count = count_older(older_than, store).await?;
    if consent.dry_run {
        output.item(&Purged { count, dry_run: true }, || format!("{} would be forgotten\n", jobs(count)))?;
        return Ok(Outcome::DONE);
    }
    let mut purged = 0;
    if count > 0 {
        consent.ask(&format!("{} would be forgotten for good.", jobs(count)))?;
        // Nothing but the dead: no store has kept anything else for so long.
        let forever = Duration::from_secs(30 * 365 * 24 * 3600);
        let retention =
            Retention { completed: forever, cancelled: forever, dead: older_than, logs: forever, occurrences: forever };
        loop {
            let step = store.prune(Fence::NONE, &retention, MAX_SWEEP).await?;
            purged += step.count;
            if !step.more || step.count == 0 {
                break;
            }
        }
    }
    output.item(&Purged { count: purged, dry_run: false }, || format!("{} forgotten\n", jobs(purged)))?;
    Ok(Outcome::DONE)
}

async fn count_older(older_than: Duration, store: &dyn Store) -> Result<usize> {
    let filter = JobFilter { states: vec![JobState::Dead], ..JobFilter::default() };
    let now = Timestamp::now();
    let is_older = |job: &JobSummary| {
        older_than.is_zero() || job.finished_at.is_some_and(|died| times::since(died, now) >= older_than)
    };
    let (mut count, mut page) = (0, PageRequest::first(PageRequest::<()>::MAX_LIMIT));
    loop {
        let found = store.list(&filter, &page).await?;
        count += found.items.iter().filter(|job| is_older(job)).count();
        match found.next {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(count),
        }
    }
}
