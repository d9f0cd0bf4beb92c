//! `orchestrix jobs logs`: the lines of a job, and those to come.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use orchestrix_api::{ListResponse, admin::attempt::LogLineView, job::JobView};
use orchestrix_core::JobId;

use crate::{
    api::{Api, ApiError, MOST, Request},
    failure::Outcome,
    output::{Format, List, Output, plain},
};

/// How often a log that is followed is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Show what a job wrote while it ran
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  orchestrix jobs logs -f 0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70")]
pub(crate) struct Arguments {
    /// The job
    id: JobId,

    /// Go on until the job is over
    #[arg(long, short)]
    follow: bool,
}

pub(crate) async fn run(arguments: &Arguments, api: &Api, output: &Output) -> Result<Outcome> {
    let id = arguments.id;
    let log = Request::get(format!("/admin/jobs/{id}/logs"));
    let mut cursor = None;
    // One document cannot be printed before its end.
    let mut kept = Vec::new();
    let mut known = false;
    loop {
        // Before the lines: what a job wrote before it was over is then among them.
        let job: JobView = match api.call(Request::get(format!("/jobs/{id}"))).await {
            // Forgotten since the last look.
            Err(error) if known && is_gone(&error) => break,
            job => job?,
        };
        known = true;
        loop {
            let part: ListResponse<LogLineView> = match api.call(log.part(cursor.as_deref(), MOST)).await {
                Err(error) if is_gone(&error) => break,
                part => part?,
            };
            let last = part.items.last().map(|line| line.seq.to_string());
            match output.format() {
                Format::Json => kept.extend(part.items),
                _ => output.list(&part.items, || part.items.iter().map(text).collect())?,
            }
            let more = part.next_cursor.is_some();
            cursor = part.next_cursor.or(last).or(cursor);
            if !more {
                break;
            }
        }
        if !arguments.follow || job.status.is_terminal() {
            break;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    if output.format() == Format::Json {
        output.item(&List { items: &kept }, String::new)?;
    }
    Ok(Outcome::DONE)
}

fn is_gone(error: &ApiError) -> bool {
    matches!(error, ApiError::Refused(refused) if refused.told.code == "job_not_found")
}

fn text(line: &LogLineView) -> String {
    format!("{} {:<5} [{}] {}\n", line.at, line.level, line.attempt, plain(&line.message))
}
