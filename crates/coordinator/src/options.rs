//! How a node takes part.

use std::time::Duration;

use orchestrix_core::{FieldError, Lifecycle, NodeName};
use orchestrix_store::{
    NodeInfo, Retention,
    coordination::{TERMS, check_term},
};

/// What a node says of itself, and the times it goes by. All nodes of a database should use the same.
#[derive(Debug, Clone)]
pub struct CoordinatorOptions {
    /// Who this is.
    pub node: NodeInfo,
    /// Whether it stands for leadership. One that does not is listed with the others, and that is all it does.
    pub stands: bool,
    /// How long a leader leads without renewing; renewed at a third of it.
    pub term: Duration,
    /// How often a node shows that it lives. Also how long holders of leases get after the database was away.
    pub heartbeat: Duration,
    /// How long a silent node or worker is still listed.
    pub dead_after: Duration,
    /// Lost leases in a row that kill a job.
    pub crash_loop: u16,
    /// How often in a row one page of an operation on many jobs may be refused, while the database answers, before the operation has failed.
    pub bulk_tries: u32,
    /// How long finished jobs and logs are kept.
    pub retention: Retention,
}

impl CoordinatorOptions {
    /// The defaults: stands for leadership, terms of 10 s, heartbeats every 10 s, dead after 30 s.
    pub fn new(node: NodeInfo) -> Self {
        Self {
            node,
            stands: true,
            term: Duration::from_secs(10),
            heartbeat: Duration::from_secs(10),
            dead_after: Duration::from_secs(30),
            crash_loop: Lifecycle::CRASH_LOOP,
            bulk_tries: 10,
            retention: Retention::default(),
        }
    }

    /// Checks that the times fit together.
    pub fn validate(&self) -> Result<(), FieldError> {
        self.node.validate()?;
        check_term(self.term)?;
        if self.heartbeat.is_zero() || self.heartbeat > *TERMS.end() {
            return Err(FieldError::new("heartbeatInterval", "must be more than nothing and at most 1 h"));
        }
        if self.dead_after < self.heartbeat {
            return Err(FieldError::new("deadNodeTimeout", "must not be shorter than the heartbeat interval"));
        }
        Ok(())
    }

    /// How long a leader's transaction may take: far less than a term, so that one that was stopped in the middle of it
    /// keeps nobody from taking over.
    pub(crate) fn patience(&self) -> Duration {
        self.term / 4
    }

    pub(crate) fn name(&self) -> &NodeName {
        &self.node.name
    }
}
