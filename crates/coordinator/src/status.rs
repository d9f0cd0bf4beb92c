//! The status of a node's coordinator, for health checks and metrics.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use orchestrix_core::NodeName;
use orchestrix_store::{Epoch, StoreError, metrics};

/// The status of a coordinator at one moment. Counters grow until the process ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoordinatorStatus {
    /// The current leader, as far as this node knows.
    pub leader: Option<NodeName>,
    /// The leader's epoch.
    pub epoch: Option<Epoch>,
    /// Whether this node leads.
    pub leading: bool,
    /// How many changes of leadership this node has seen.
    pub leader_changes: u64,
    /// The status of each service by name. Empty until this node has led.
    pub services: BTreeMap<&'static str, ServiceStatus>,
}

/// The status of one service on this node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceStatus {
    /// Steps run, including failed ones.
    pub runs: u64,
    /// Jobs, workers or rows that the steps changed or removed.
    pub affected: u64,
    /// Steps that failed.
    pub failures: u64,
    /// Steps that the store fenced because another node led. These are not failures.
    pub fenced: u64,
    /// Failures since the last successful step. Zero while another node leads.
    pub consecutive_failures: u64,
    /// The latest error, while the service keeps failing.
    pub error: Option<String>,
    /// How late the latest step started.
    pub lag: Duration,
    /// The largest lag of any step.
    pub max_lag: Duration,
    /// The total duration of all steps.
    pub total_time: Duration,
}

impl CoordinatorStatus {
    /// Whether there is a leader and no service of this node keeps failing.
    pub fn is_healthy(&self) -> bool {
        self.leader.is_some() && self.services.values().all(|service| service.consecutive_failures == 0)
    }
}

/// Records the status that [`Coordinator::status`](crate::Coordinator::status) returns, and the availability of the
/// store.
#[derive(Debug, Default)]
pub(crate) struct StatusRecorder(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    status: CoordinatorStatus,
    /// Whether the latest call found the store unavailable.
    unavailable: bool,
    /// When the latest outage ended, if there was one.
    available_since: Option<Instant>,
}

impl StatusRecorder {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn status(&self) -> CoordinatorStatus {
        self.lock().status.clone()
    }

    pub(crate) fn leading(&self, node: &NodeName, epoch: Epoch) {
        self.set_leader(Some(node.clone()), epoch, true);
    }

    pub(crate) fn following(&self, leader: Option<NodeName>, epoch: Epoch) {
        self.set_leader(leader, epoch, false);
    }

    fn set_leader(&self, leader: Option<NodeName>, epoch: Epoch, leading: bool) {
        let status = &mut self.lock().status;
        if status.epoch != Some(epoch) {
            status.leader_changes += 1;
            metrics::leader_changed();
        }
        status.leader = leader;
        status.epoch = Some(epoch);
        status.leading = leading;
    }

    /// Records that no leader is known.
    pub(crate) fn no_leader(&self) {
        let status = &mut self.lock().status;
        status.leader = None;
        status.leading = false;
    }

    pub(crate) fn record_step(
        &self,
        service: &'static str,
        lag: Duration,
        took: Duration,
        result: Result<usize, &StoreError>,
    ) {
        let mut inner = self.lock();
        let status = inner.status.services.entry(service).or_default();
        status.runs += 1;
        status.lag = lag;
        status.max_lag = status.max_lag.max(lag);
        status.total_time += took;
        match result {
            Ok(affected) => {
                status.affected += affected as u64;
                status.consecutive_failures = 0;
                status.error = None;
            }
            Err(StoreError::Deposed { .. }) => status.fenced += 1,
            Err(error) => {
                status.failures += 1;
                status.consecutive_failures += 1;
                status.error = Some(error.to_string());
            }
        }
    }

    /// Clears a service's failures when this node stops leading: its health no longer depends on them.
    pub(crate) fn clear_failures(&self, service: &'static str) {
        if let Some(status) = self.lock().status.services.get_mut(service) {
            status.consecutive_failures = 0;
            status.error = None;
        }
    }

    /// Records whether a call found the store available.
    pub(crate) fn record_contact(&self, result: Result<(), &StoreError>) {
        let mut inner = self.lock();
        match result {
            Err(StoreError::Unavailable(_)) => inner.unavailable = true,
            _ if inner.unavailable => {
                inner.unavailable = false;
                inner.available_since = Some(Instant::now());
            }
            _ => {}
        }
    }

    /// Records how long the database has been running, if the store knows.
    pub(crate) fn record_uptime(&self, uptime: Option<Duration>) {
        let since = uptime.and_then(|uptime| Instant::now().checked_sub(uptime));
        let mut inner = self.lock();
        inner.available_since = inner.available_since.max(since);
    }

    /// How long the store has been available since its latest known outage. `None` if no outage is known.
    pub(crate) fn available_for(&self) -> Option<Duration> {
        self.lock().available_since.map(|since| since.elapsed())
    }
}
