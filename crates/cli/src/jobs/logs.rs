//! `orchestrix jobs logs`: prints the log of a job, or follows it.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use orchestrix_api::{ListResponse, admin::attempt::LogLineView, job::JobView};
use orchestrix_core::JobId;

use crate::{
    api::{ApiClient, ApiError, MAX_PAGE, Request},
    error::ExitStatus,
    output::{Format, List, Output, escape_control},
};

/// The time between two polls of a log that is followed.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Show the log of a job
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  orchestrix jobs logs -f 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
pub(crate) struct Arguments {
    /// The job's id
    id: JobId,

    /// Follow the log until the job has finished
    #[arg(long, short)]
    follow: bool,
}

pub(crate) async fn run(arguments: &Arguments, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let id = arguments.id;
    let log = Request::get(format!("/admin/jobs/{id}/logs"));
    let mut cursor = None;
    // A JSON document can only be printed at the end.
    let mut lines = Vec::new();
    let mut found = false;
    loop {
        // Before the log: everything that a finished job wrote is then in the log.
        let job: JobView = match api.call(Request::get(format!("/jobs/{id}"))).await {
            // Deleted since the last poll.
            Err(error) if found && is_not_found(&error) => break,
            job => job?,
        };
        found = true;
        loop {
            let page: ListResponse<LogLineView> = match api.call(log.page(cursor.as_deref(), MAX_PAGE)).await {
                Err(error) if is_not_found(&error) => break,
                page => page?,
            };
            let last = page.items.last().map(|line| line.seq.to_string());
            match output.format() {
                Format::Json => lines.extend(page.items),
                _ => output.list(&page.items, || page.items.iter().map(text).collect())?,
            }
            let more = page.next_cursor.is_some();
            cursor = page.next_cursor.or(last).or(cursor);
            if !more {
                break;
            }
        }
        if !arguments.follow || job.status.is_terminal() {
            break;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    if output.format() == Format::Json {
        output.item(&List { items: &lines }, String::new)?;
    }
    Ok(ExitStatus::SUCCESS)
}

fn is_not_found(error: &ApiError) -> bool {
    matches!(error, ApiError::Rejected(rejection) if rejection.problem.code == "job_not_found")
}

fn text(line: &LogLineView) -> String {
    format!("{} {:<5} [{}] {}\n", line.at, line.level, line.attempt, escape_control(&line.message))
}
