//! `orchestrix nodes`: lists the nodes and the leader.

use anyhow::Result;
use clap::Subcommand;
use orchestrix_api::admin::node::NodeView;
use orchestrix_core::Timestamp;

use crate::{
    api::{ApiClient, Request},
    error::ExitStatus,
    output::{Output, table},
    times,
};

/// Show the coordinator nodes
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List all nodes and mark the leader
    #[command(after_help = "Example:\n  orchestrix nodes list --output json")]
    List,
}

pub(crate) async fn run(command: Command, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let Command::List = command;
    let nodes = api.collect_pages(&Request::get("/admin/nodes"), None, usize::MAX).await?;
    let now = Timestamp::now();
    output.page(&nodes, |nodes| {
        let row = |node: &NodeView| {
            [
                node.node_id.to_string(),
                if node.leader { "leader" } else { "follower" }.into(),
                node.address.clone().unwrap_or_else(|| "-".into()),
                node.roles.join(","),
                times::relative(node.started_at, now),
                times::relative(node.last_seen_at, now),
            ]
        };
        table(["NODE", "ROLE", "ADDRESS", "PARTS", "STARTED", "SEEN"], nodes.iter().map(row))
    })?;
    Ok(ExitStatus::SUCCESS)
}
