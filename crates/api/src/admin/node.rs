//! Nodes: who takes part in coordination, and who leads.

use orchestrix_core::{NodeName, Timestamp};
use orchestrix_store::NodeStatus;
use serde::{Deserialize, Serialize};

/// A node as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeView {
    /// Its name.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub node_id: NodeName,
    /// Whether its term runs.
    pub leader: bool,
    /// Where its API can be reached, if it has one.
    pub address: Option<String>,
    /// What it does: `api`, `coordinator`, `worker`.
    pub roles: Vec<String>,
    /// When it first showed itself.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub started_at: Timestamp,
    /// When it last showed that it lives.
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
