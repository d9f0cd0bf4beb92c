//! The settings of a coordinator.

use std::time::Duration;

use orchestrix_core::{FieldError, Lifecycle, NodeName};
use orchestrix_store::{
    NodeInfo, Retention,
    coordination::{TERMS, check_term},
};

/// The settings of a coordinator. All nodes of a database should use the same durations.
#[derive(Debug, Clone)]
pub struct CoordinatorOptions {
    /// How the node registers.
    pub node: NodeInfo,
    /// Whether the node campaigns for leadership. One that does not only sends heartbeats.
    pub can_lead: bool,
    /// How long a leader leads without renewing its term. It renews after a third.
    pub term: Duration,
    /// The interval of node heartbeats. After an outage of the database, workers get as long to extend their leases.
    pub heartbeat: Duration,
    /// How long a node or a worker stays registered without heartbeats.
    pub dead_after: Duration,
    /// How many leases in a row a job may lose before it becomes dead.
    pub crash_loop_limit: u16,
    /// How many times in a row an available database may refuse a page of a bulk operation before the operation fails.
    pub max_operation_refusals: u32,
    /// How long finished jobs and logs are kept.
    pub retention: Retention,
}

impl CoordinatorOptions {
    /// The defaults: campaigns for leadership, terms of 10 s, heartbeats every 10 s, dead after 30 s.
    pub fn new(node: NodeInfo) -> Self {
        Self {
            node,
            can_lead: true,
            term: Duration::from_secs(10),
            heartbeat: Duration::from_secs(10),
            dead_after: Duration::from_secs(30),
            crash_loop_limit: Lifecycle::CRASH_LOOP,
            max_operation_refusals: 10,
            retention: Retention::default(),
        }
    }

    /// Checks the node's name and that the durations are consistent.
    pub fn validate(&self) -> Result<(), FieldError> {
        self.node.validate()?;
        check_term(self.term)?;
        if self.heartbeat.is_zero() || self.heartbeat > *TERMS.end() {
            return Err(FieldError::new("heartbeatInterval", "must be more than 0 and at most 1 h"));
        }
        if self.dead_after < self.heartbeat {
            return Err(FieldError::new("deadNodeTimeout", "must not be shorter than the heartbeat interval"));
        }
        Ok(())
    }

    /// The time limit of a leader's transaction. It is far shorter than a term, so that a leader that hangs in a
    /// transaction does not block its successor.
    pub(crate) fn transaction_timeout(&self) -> Duration {
        self.term / 4
    }

    pub(crate) fn name(&self) -> &NodeName {
        &self.node.name
    }
}
