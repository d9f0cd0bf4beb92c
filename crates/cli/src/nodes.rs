//! `orchestrix nodes`: who takes part in coordination, and who leads.

use anyhow::Result;
use clap::Subcommand;
use orchestrix_api::admin::node::NodeView;
use orchestrix_core::Timestamp;

use crate::{
    api::{Api, Request},
    failure::Outcome,
    output::{Output, table},
    times,
};

/// Look at the nodes of a database
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show every node, and which one leads
    #[command(after_help = "Example:\n  orchestrix nodes list --output json")]
    List,
}

pub(crate) async fn run(command: Command, api: &Api, output: &Output) -> Result<Outcome> {
    let Command::List = command;
    let nodes = api.gather(&Request::get("/admin/nodes"), None, usize::MAX).await?;
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
    Ok(Outcome::DONE)
}
