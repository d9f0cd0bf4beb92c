//! `orchestrix nodes`: who takes part in coordination, and who leads.

use anyhow::Result;
use clap::Subcommand;
use orchestrix_core::{NodeName, Timestamp};
use orchestrix_store::{PageRequest, Store};
use serde::Serialize;

use crate::{
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

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeView {
    node_id: NodeName,
    leader: bool,
    address: Option<String>,
    roles: Vec<String>,
    started_at: Timestamp,
    last_seen_at: Timestamp,
}

pub(crate) async fn run(command: Command, store: &dyn Store, output: &Output) -> Result<Outcome> {
    let Command::List = command;
    let mut nodes = Vec::new();
    let mut page = PageRequest::first(PageRequest::<()>::MAX_LIMIT);
    loop {
        let found = store.nodes(&page).await?;
        nodes.extend(found.items.into_iter().map(|node| NodeView {
            node_id: node.info.name,
            leader: node.leads,
            address: node.info.address,
            roles: node.info.roles,
            started_at: node.started_at,
            last_seen_at: node.last_seen_at,
        }));
        match found.next {
            Some(cursor) => page.cursor = Some(cursor),
            None => break,
        }
    }
    let now = Timestamp::now();
    output.list(&nodes, || {
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
