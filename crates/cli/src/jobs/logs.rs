//! `orchestrix jobs logs`: the lines of a job, and those to come.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use orchestrix_core::{JobId, Timestamp};
use orchestrix_store::{LogEntry, PageRequest, Store, StoreError};
use serde::Serialize;

use crate::{
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

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LineView {
    seq: i64,
    at: Timestamp,
    level: &'static str,
    attempt: u16,
    message: String,
}

impl From<LogEntry> for LineView {
    fn from(entry: LogEntry) -> Self {
        let LogEntry { seq, at, level, attempt, message } = entry;
        Self { seq, at, level: level.as_str(), attempt, message }
    }
}

pub(crate) async fn run(arguments: &Arguments, store: &dyn Store, output: &Output) -> Result<Outcome> {
    let id = arguments.id;
    let mut page = PageRequest::first(PageRequest::<i64>::MAX_LIMIT);
    // One document cannot be printed before its end.
    let mut kept = Vec::new();
    let mut known = false;
    loop {
        // Before the lines: what a job wrote before it was over is then among them.
        let summary = store.summary(id).await?;
        if summary.is_none() && !known {
            return Err(StoreError::JobNotFound(id).into());
        }
        known = true;
        loop {
            let found = store.logs(id, &page).await?;
            let (more, last) = (found.next.is_some(), found.items.last().map(|entry| entry.seq));
            let lines: Vec<LineView> = found.items.into_iter().map(LineView::from).collect();
            match output.format() {
                Format::Json => kept.extend(lines),
                _ => output.list(&lines, || lines.iter().map(text).collect())?,
            }
            page.cursor = found.next.or(last).or(page.cursor);
            if !more {
                break;
            }
        }
        if !arguments.follow || summary.is_none_or(|job| job.state.is_terminal()) {
            break;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    if output.format() == Format::Json {
        output.item(&List { items: &kept }, String::new)?;
    }
    Ok(Outcome::DONE)
}

fn text(line: &LineView) -> String {
    format!("{} {:<5} [{}] {}\n", line.at, line.level, line.attempt, plain(&line.message))
}
