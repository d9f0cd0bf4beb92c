//! Campaigning for leadership.
//!
//! The leader renews its term after a third of it. It counts the term from the moment it sent the request, on its own
//! monotonic clock, and stops a little before the end: by then it has renewed the term or must assume that another node
//! leads. The store refuses writes that a former leader still has in flight, because they carry an old epoch.

use std::time::{Duration, Instant};

use orchestrix_store::{Epoch, Leadership, Store, StoreError, metrics};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::{jitter::jittered, options::CoordinatorOptions, status::StatusRecorder};

/// A term for which this node leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeadershipTerm {
    pub(crate) epoch: Epoch,
    /// Until when this node may act as the leader.
    pub(crate) valid_until: Instant,
}

impl LeadershipTerm {
    pub(crate) fn is_valid(&self) -> bool {
        Instant::now() < self.valid_until
    }
}

/// How often a follower campaigns, to notice that the leader has resigned.
const FOLLOWER_INTERVAL: Duration = Duration::from_millis(600);
/// The pause after a campaign that failed.
const RETRY: Duration = Duration::from_millis(250);
/// The fraction of a term (one in this many) that the leader gives up, to tolerate clocks that run at different speeds.
const SAFETY_FRACTION: u32 = 10;

/// Campaigns for leadership and publishes the current term.
pub(crate) struct Campaign<'a> {
    store: &'a dyn Store,
    options: &'a CoordinatorOptions,
    status: &'a StatusRecorder,
    term: &'a watch::Sender<Option<LeadershipTerm>>,
    /// The latest epoch in which the store refused a step because another node leads.
    deposed: watch::Receiver<Option<Epoch>>,
}

impl<'a> Campaign<'a> {
    pub(crate) fn new(
        store: &'a dyn Store,
        options: &'a CoordinatorOptions,
        status: &'a StatusRecorder,
        term: &'a watch::Sender<Option<LeadershipTerm>>,
        deposed: watch::Receiver<Option<Epoch>>,
    ) -> Self {
        Self { store, options, status, term, deposed }
    }

    /// Campaigns repeatedly. Never returns.
    pub(crate) async fn run(&self) {
        let mut deposed = self.deposed.clone();
        loop {
            let pause = self.campaign_once().await;
            tokio::select! {
                () = sleep(pause) => {}
                // The report may be late, after this node was elected again: it concerns only its own epoch.
                Ok(()) = deposed.changed() => {
                    let deposed_epoch = *deposed.borrow_and_update();
                    if self.current_term().is_some_and(|term| Some(term.epoch) == deposed_epoch) {
                        self.step_down();
                    }
                }
            }
        }
    }

    /// Campaigns once. Returns the pause before the next campaign.
    async fn campaign_once(&self) -> Duration {
        let duration = self.options.term;
        let started = Instant::now();
        let current = self.current_term();
        let limit = current.map_or(duration, |term| term.valid_until.saturating_duration_since(started)).max(RETRY);
        let campaign =
            self.store.campaign_for_leadership(self.options.name(), duration, current.map(|term| term.epoch));
        let result = timeout(limit, campaign)
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable("the store did not answer in time".into())));
        self.status.record_contact(result.as_ref().map(drop));
        let pause = match result {
            Ok(Leadership::Leading(epoch)) => {
                let valid_until = started + (duration - duration / SAFETY_FRACTION);
                self.lead(LeadershipTerm { epoch, valid_until });
                jittered(duration / 3).saturating_sub(started.elapsed())
            }
            Ok(Leadership::Following { leader, epoch, ends_in }) => {
                self.step_down();
                self.status.following(leader.filter(|_| !ends_in.is_zero()), epoch);
                jittered(FOLLOWER_INTERVAL).min(ends_in + jittered(Duration::from_millis(50)))
            }
            Err(error) => {
                tracing::warn!(node = %self.options.name(), %error, "campaign for leadership failed");
                if !self.current_term().is_some_and(|term| term.is_valid()) {
                    self.step_down();
                    self.status.no_leader();
                }
                jittered(RETRY)
            }
        };
        // Set the gauge every time: the exporter drops series that are not updated.
        metrics::leads(self.options.name(), self.current_term().is_some());
        pause
    }

    fn current_term(&self) -> Option<LeadershipTerm> {
        *self.term.borrow()
    }

    /// Publishes a new or renewed term.
    fn lead(&self, term: LeadershipTerm) {
        let is_new = self.current_term().is_none_or(|current| current.epoch != term.epoch);
        self.term.send_replace(Some(term));
        if is_new {
            tracing::info!(node = %self.options.name(), epoch = %term.epoch, "became leader");
            self.status.leading(self.options.name(), term.epoch);
        }
    }

    fn step_down(&self) {
        if let Some(term) = self.term.send_replace(None) {
            tracing::info!(node = %self.options.name(), epoch = %term.epoch, "stepped down");
            metrics::leads(self.options.name(), false);
        }
    }

    /// Resigns a held term, so that another node can lead at once.
    pub(crate) async fn resign(&self) {
        let Some(term) = self.term.send_replace(None) else { return };
        metrics::leads(self.options.name(), false);
        match timeout(self.options.term, self.store.resign_leadership(self.options.name(), term.epoch)).await {
            Ok(Ok(_)) => tracing::info!(node = %self.options.name(), epoch = %term.epoch, "resigned"),
            Ok(Err(error)) => tracing::warn!(%error, "resignation failed; the term expires on its own"),
            Err(_) => tracing::warn!("resignation timed out; the term expires on its own"),
        }
    }
}
