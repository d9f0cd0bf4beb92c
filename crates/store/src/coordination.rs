//! What nodes ask of a store to agree on who does what must be done once.
//!
//! One node leads, for a term by the store's clock. Every takeover begins a new epoch, and everything that a leader
//! writes carries its epoch as a [`Fence`], checked in the transaction that writes. So a leader that was stopped, or cut
//! off, and does not know that its term is over can do no harm: its writes are refused as
//! [`StoreError::Deposed`].

use std::{fmt, time::Duration};

use orchestrix_core::{FieldError, NodeName, Timestamp};

use crate::StoreError;

/// The number of a leader's reign; grows with every takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub i64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// In whose name housekeeping is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence(Option<(Epoch, Duration)>);

impl Fence {
    /// Nobody's: not checked. For tests, and for whoever knows that there is no leader.
    pub const NONE: Self = Self(None);

    /// The leader's of `epoch`: refused once another leads. What is done in its name may take as long as `patience`,
    /// after which a store with a server of its own ends it: a leader that stops in the middle blocks nobody for longer.
    pub const fn of(epoch: Epoch, patience: Duration) -> Self {
        Self(Some((epoch, patience)))
    }

    /// The epoch that must be current.
    pub fn epoch(self) -> Option<Epoch> {
        self.0.map(|(epoch, _)| epoch)
    }

    /// How long what is done in its name may take.
    pub fn patience(self) -> Option<Duration> {
        self.0.map(|(_, patience)| patience)
    }

    /// Refuses it unless `current` is its epoch.
    pub fn check(self, current: Epoch) -> Result<(), StoreError> {
        match self.epoch() {
            Some(epoch) if epoch != current => Err(StoreError::Deposed { epoch, current }),
            _ => Ok(()),
        }
    }
}

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// Its name, one of its own for every start.
    pub name: NodeName,
    /// Where its API can be reached, if it has one.
    pub address: Option<String>,
    /// What it does: `api`, `coordinator`, `worker`.
    pub roles: Vec<String>,
}

impl NodeInfo {
    /// The longest address.
    pub const MAX_ADDRESS: usize = 255;
    /// The most roles.
    pub const MAX_ROLES: usize = 16;

    /// Checks the limits.
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

/// A node as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// What it said of itself.
    pub info: NodeInfo,
    /// Whether its term runs.
    pub leads: bool,
    /// When it first showed itself.
    pub started_at: Timestamp,
    /// When it last showed that it lives.
    pub last_seen_at: Timestamp,
}

/// How a node's candidacy ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// It leads, for a term from now.
    Leading(Epoch),
    /// Another does.
    Following {
        /// Who; `None` if nobody ever led.
        leader: Option<NodeName>,
        /// In which epoch.
        epoch: Epoch,
        /// How long the term still runs unless it is renewed.
        ends_in: Duration,
    },
}

/// The shortest and the longest term.
pub const TERMS: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3600);

/// Checks a term.
pub fn check_term(term: Duration) -> Result<(), FieldError> {
    if TERMS.contains(&term) {
        return Ok(());
    }
    Err(FieldError::new("leaderTerm", "must be from 0.1 s to 1 h"))
}

/// How long until there is something to do, by the store's clock; zero if there is now, `None` if nothing waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepTimes {
    /// For [`promote`](crate::Store::promote).
    pub promote: Option<Duration>,
    /// For [`expire`](crate::Store::expire).
    pub expire: Option<Duration>,
    /// For [`reap`](crate::Store::reap).
    pub reap: Option<Duration>,
    /// For [`time_out`](crate::Store::time_out).
    pub time_out: Option<Duration>,
    /// For [`unblock`](crate::Store::unblock).
    pub unblock: Option<Duration>,
    /// For [`fire`](crate::Store::fire).
    pub fire: Option<Duration>,
    /// How long the database has been up, where it can tell: its users may not have got through to it before.
    pub up: Option<Duration>,
}
