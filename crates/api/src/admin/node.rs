//! Nodes and the leader among them.

use orchestrix_core::{NodeName, Timestamp};
use orchestrix_store::NodeStatus;
use serde::{Deserialize, Serialize};

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeView {
    /// The node's name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub node_id: NodeName,
    /// Whether the node is the leader.
    pub leader: bool,
    /// The address of the node's API, if it serves one.
    pub address: Option<String>,
    /// The roles of the node: `api`, `coordinator`, `worker`.
    pub roles: Vec<String>,
    /// When the node started.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub started_at: Timestamp,
    /// When the node last sent a heartbeat.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub last_seen_at: Timestamp,
}

impl From<NodeStatus> for NodeView {
    fn from(node: NodeStatus) -> Self {
        Self {
            node_id: node.info.name,
            leader: node.leads,
            address: node.info.address,
            roles: node.info.roles,
            started_at: node.started_at,
            last_seen_at: node.last_seen_at,
        }
    }
}
