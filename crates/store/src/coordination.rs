//! Leadership: nodes, terms, epochs and fences.
//!
//! One node leads, for a term by the store's clock. Every takeover begins a new epoch. Every write of a leader
//! carries its epoch as a [`Fence`], which the store checks in the transaction that writes. So a leader that was
//! suspended or cut off and does not know that its term has ended does no harm: its writes are refused with
//! [`StoreError::Deposed`].

use std::{fmt, time::Duration};

use orchestrix_core::{FieldError, NodeName, Timestamp};

use crate::StoreError;

/// The number of a leadership. It grows with every takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub i64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The leadership under which a sweep writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence(Option<(Epoch, Duration)>);

impl Fence {
    /// No fence: the epoch is not checked. For tests, and for writes that do not need a leader.
    pub const NONE: Self = Self(None);

    /// The fence of the leader of `epoch`: its writes are refused once another node leads.
    ///
    /// A database server aborts a fenced transaction after `patience`, so that a leader that stops halfway does not
    /// hold locks for longer.
    pub const fn of(epoch: Epoch, patience: Duration) -> Self {
        Self(Some((epoch, patience)))
    }

    /// The epoch that must be current, if any.
    pub fn epoch(self) -> Option<Epoch> {
        self.0.map(|(epoch, _)| epoch)
    }

    /// How long a fenced transaction may take.
    pub fn patience(self) -> Option<Duration> {
        self.0.map(|(_, patience)| patience)
    }

    /// Fails unless `current` is the epoch of the fence.
    pub fn check(self, current: Epoch) -> Result<(), StoreError> {
        match self.epoch() {
            Some(epoch) if epoch != current => Err(StoreError::Deposed { epoch, current }),
            _ => Ok(()),
        }
    }
}

/// A node as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// The name, unique per start.
    pub name: NodeName,
    /// The address of its API, if it serves one.
    pub address: Option<String>,
    /// Its roles: `api`, `coordinator`, `worker`.
    pub roles: Vec<String>,
}

impl NodeInfo {
    /// The longest address.
    pub const MAX_ADDRESS: usize = 255;
    /// The most roles.
    pub const MAX_ROLES: usize = 16;

    /// Validates the limits.
    pub fn validate(&self) -> Result<(), FieldError> {
        let plain =
            |text: &String| !text.is_empty() && text.len() <= Self::MAX_ADDRESS && !text.contains(char::is_control);
        if self.address.as_ref().is_some_and(|address| !plain(address)) {
            return Err(FieldError::new("address", "must have 1 to 255 bytes and no control characters"));
        }
        if self.roles.len() > Self::MAX_ROLES || !self.roles.iter().all(plain) {
            return Err(FieldError::new(
                "roles",
                "must be at most 16, each with 1 to 255 bytes and no control characters",
            ));
        }
        Ok(())
    }
}

/// A registered node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its description of itself.
    pub info: NodeInfo,
    /// Whether it leads.
    pub leads: bool,
    /// When it registered.
    pub started_at: Timestamp,
    /// When it last sent a heartbeat.
    pub last_seen_at: Timestamp,
}

/// The result of a campaign for leadership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// The node leads, for a term from now.
    Leading(Epoch),
    /// Another node leads, or none yet.
    Following {
        /// The leader; `None` if no node ever led.
        leader: Option<NodeName>,
        /// Its epoch.
        epoch: Epoch,
        /// The rest of its term unless it renews it.
        ends_in: Duration,
    },
}

/// The shortest and the longest term.
pub const TERMS: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3600);

/// Validates the length of a term.
pub fn check_term(term: Duration) -> Result<(), FieldError> {
    if TERMS.contains(&term) {
        return Ok(());
    }
    Err(FieldError::new("leaderTerm", "must be from 0.1 s to 1 h"))
}

/// How long until each sweep has work, by the store's clock: zero if it has work now, `None` if nothing waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepTimes {
    /// Until [`promote_jobs`](crate::CoordinationStore::promote_jobs) has work.
    pub promote: Option<Duration>,
    /// Until [`expire_jobs`](crate::CoordinationStore::expire_jobs) has work.
    pub expire: Option<Duration>,
    /// Until [`reap_leases`](crate::CoordinationStore::reap_leases) has work.
    pub reap: Option<Duration>,
    /// Until [`time_out_attempts`](crate::CoordinationStore::time_out_attempts) has work.
    pub time_out: Option<Duration>,
    /// Until [`unblock_jobs`](crate::CoordinationStore::unblock_jobs) has work.
    pub unblock: Option<Duration>,
    /// Until [`fire_schedules`](crate::CoordinationStore::fire_schedules) has work.
    pub fire: Option<Duration>,
    /// How long the database has been up, if it can say. Workers may not have reached it before.
    pub up: Option<Duration>,
}
