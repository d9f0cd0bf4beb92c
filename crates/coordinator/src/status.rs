//! What a node knows of itself, for health checks and metrics.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use orchestrix_core::NodeName;
use orchestrix_store::{Epoch, StoreError, metrics};

/// How a node stands, at one moment. Counts grow for as long as the process lives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoordinatorStatus {
    /// Who leads, as far as this node knows.
    pub leader: Option<NodeName>,
    /// In which epoch.
    pub epoch: Option<Epoch>,
    /// Whether it is this node.
    pub leading: bool,
    /// How often the leader has changed, as far as this node saw.
    pub leader_changes: u64,
    /// What the services did here, by name. Empty before this node first led.
    pub services: BTreeMap<&'static str, ServiceStatus>,
}

/// What one service did on this node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceStatus {
    /// Steps taken, those that failed included.
    pub runs: u64,
    /// Jobs, workers or rows that it moved or removed.
    pub moved: u64,
    /// Steps that failed.
    pub failures: u64,
    /// Steps that the store refused, because another node led by then. No failure: it is what the fence is for.
    pub refused: u64,
    /// Failures since the last step that did not fail; more than none is worth a look. None while another node leads.
    pub failing: u64,
    /// What the last failure was, while it lasts.
    pub error: Option<String>,
    /// How late the latest step began.
    pub lag: Duration,
    /// The longest that one began late.
    pub max_lag: Duration,
    /// How long all steps took together.
    pub took: Duration,
}

impl CoordinatorStatus {
    /// Whether somebody leads and no service of this node keeps failing.
    pub fn is_healthy(&self) -> bool {
        self.leader.is_some() && self.services.values().all(|service| service.failing == 0)
    }
}

/// Where the parts of a node write down how they do.
#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    status: CoordinatorStatus,
    /// The store did not answer the last time it was asked.
    away: bool,
    /// Since when it can be reached, if there was a time when it could not.
    back: Option<Instant>,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn status(&self) -> CoordinatorStatus {
        self.lock().status.clone()
    }

    pub(crate) fn leads(&self, node: &NodeName, epoch: Epoch) {
        self.led_by(Some(node.clone()), epoch, true);
    }

    pub(crate) fn follows(&self, leader: Option<NodeName>, epoch: Epoch) {
        self.led_by(leader, epoch, false);
    }

    fn led_by(&self, leader: Option<NodeName>, epoch: Epoch, leading: bool) {
        let status = &mut self.lock().status;
        if status.epoch != Some(epoch) {
            status.leader_changes += 1;
            metrics::leader_changed();
        }
        status.leader = leader;
        status.epoch = Some(epoch);
        status.leading = leading;
    }

    /// Nobody leads, as far as this node knows.
    pub(crate) fn unled(&self) {
        let status = &mut self.lock().status;
        status.leader = None;
        status.leading = false;
    }

    /// Takes note of a step.
    pub(crate) fn ran(&self, service: &'static str, lag: Duration, took: Duration, answer: Result<usize, &StoreError>) {
        let mut inner = self.lock();
        let status = inner.status.services.entry(service).or_default();
        status.runs += 1;
        status.lag = lag;
        status.max_lag = status.max_lag.max(lag);
        status.took += took;
        match answer {
            Ok(moved) => {
                status.moved += moved as u64;
                status.failing = 0;
                status.error = None;
            }
            Err(StoreError::Deposed { .. }) => status.refused += 1,
            Err(error) => {
                status.failures += 1;
                status.failing += 1;
                status.error = Some(error.to_string());
            }
        }
    }

    /// A service has nothing to do here any more: what made it fail is not this node's to mend.
    pub(crate) fn rests(&self, service: &'static str) {
        if let Some(status) = self.lock().status.services.get_mut(service) {
            status.failing = 0;
            status.error = None;
        }
    }

    /// Takes note of whether the store can be reached.
    pub(crate) fn contact(&self, answer: Result<(), &StoreError>) {
        let mut inner = self.lock();
        match answer {
            Err(StoreError::Unavailable(_)) => inner.away = true,
            _ if inner.away => {
                inner.away = false;
                inner.back = Some(Instant::now());
            }
            _ => {}
        }
    }

    /// Takes note of how long the database has been up, if it says.
    pub(crate) fn up(&self, up: Option<Duration>) {
        let since = up.and_then(|up| Instant::now().checked_sub(up));
        let mut inner = self.lock();
        inner.back = inner.back.max(since);
    }

    /// How long the store can have been reached without a break, as far as anybody knows of one.
    pub(crate) fn reachable_for(&self) -> Option<Duration> {
        self.lock().back.map(|back| back.elapsed())
    }
}
