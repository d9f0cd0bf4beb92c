//! `orchestrix stats`: totals of jobs, queues, workers and nodes.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use orchestrix_api::admin::stats::Stats;

use crate::{
    api::{ApiClient, Request},
    error::ExitStatus,
    output::{Output, pairs},
    times,
};

/// Show totals: jobs by state, queues, workers, nodes and the leader
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  orchestrix stats --output json")]
pub(crate) struct Arguments {}

pub(crate) async fn run(api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let stats: Stats = api.call(Request::get("/admin/stats")).await?;
    output.item(&stats, || describe(&stats))?;
    Ok(ExitStatus::SUCCESS)
}

fn describe(stats: &Stats) -> String {
    let Stats { queues, workers, nodes, leader, open_operations } = stats;
    let jobs: Vec<String> = queues.counts.iter().map(|(state, n)| format!("{n} {state}")).collect();
    let more = if queues.more { " (more queues are not counted)" } else { "" };
    let oldest = queues.oldest_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    pairs([
        ("jobs", if jobs.is_empty() { "none pending or running".into() } else { jobs.join(", ") }),
        ("oldest", oldest.map_or_else(|| "-".into(), times::brief)),
        ("queues", format!("{}, {} paused{more}", queues.count, queues.paused)),
        (
            "workers",
            format!(
                "{} live, {} draining, {} stopping, {} silent",
                workers.live, workers.draining, workers.stopping, workers.silent
            ),
        ),
        ("nodes", nodes.to_string()),
        ("leader", leader.as_ref().map_or_else(|| "none".into(), ToString::to_string)),
        ("operations", format!("{open_operations} running")),
    ])
}
