//! `orchestrix stats`: how the whole stands, in a few numbers.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use orchestrix_api::admin::stats::Stats;

use crate::{
    api::{Api, Request},
    failure::Outcome,
    output::{Output, pairs},
    times,
};

/// Show how the whole stands: jobs by state, workers, nodes, who leads
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  orchestrix stats --output json")]
pub(crate) struct Arguments {}

pub(crate) async fn run(api: &Api, output: &Output) -> Result<Outcome> {
    let stats: Stats = api.call(Request::get("/admin/stats")).await?;
    output.item(&stats, || described(&stats))?;
    Ok(Outcome::DONE)
}

fn described(stats: &Stats) -> String {
    let Stats { queues, workers, nodes, leader, open_operations } = stats;
    let jobs: Vec<String> = queues.counts.iter().map(|(state, n)| format!("{n} {state}")).collect();
    let more = if queues.more { " and more, which are not counted" } else { "" };
    let oldest = queues.oldest_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    pairs([
        ("jobs", if jobs.is_empty() { "none waits or runs".into() } else { jobs.join(", ") }),
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
        ("leader", leader.as_ref().map_or_else(|| "nobody".into(), ToString::to_string)),
        ("operations", format!("{open_operations} under way")),
    ])
}
