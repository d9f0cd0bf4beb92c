//! The leases that this worker holds, and keeping them.
//!
//! A lease is renewed after a third of it, or after the heartbeat interval if that comes first, until its outcome is
//! reported. Whatever happens here happens on a thread of its own: handlers that block theirs lose no lease.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use orchestrix_core::LeaseToken;
use orchestrix_store::{LeaseStatus, claim::MAX_TOKENS};
use tokio::sync::Notify;

use crate::{Context, JobSource, guard::guarded, line::about_job, stats::Counters, stop::StopReason};

/// How soon a renewal that failed is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(300);
/// How long a renewal may take before it is tried again on another connection.
const PATIENCE: Duration = Duration::from_secs(5);
const LEAST_PATIENCE: Duration = Duration::from_millis(200);

pub(crate) struct Leases {
    held: Mutex<Held>,
    /// Told when a lease was added that is due before the next look.
    sooner: Notify,
    interval: Duration,
}

struct Held {
    leases: HashMap<LeaseToken, Lease>,
    next_look: Instant,
}

struct Lease {
    context: Context,
    /// When the request that last renewed it was sent.
    renewed: Instant,
}

impl Leases {
    pub(crate) fn new(interval: Duration) -> Self {
        let held = Held { leases: HashMap::new(), next_look: Instant::now() };
        Self { held: Mutex::new(held), sooner: Notify::new(), interval }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn due(&self, lease: &Lease) -> Instant {
        lease.renewed + self.interval.min(lease.context.lease() / 3)
    }

    pub(crate) fn add(&self, contexts: &[Context]) {
        let mut held = self.lock();
        let mut earliest = held.next_look;
        for context in contexts {
            let lease = Lease { context: context.clone(), renewed: context.begun() };
            earliest = earliest.min(self.due(&lease));
            held.leases.insert(context.lease_token(), lease);
        }
        if earliest < held.next_look {
            self.sooner.notify_one();
        }
    }

    pub(crate) fn remove<'a>(&self, contexts: impl IntoIterator<Item = &'a Context>) {
        let mut held = self.lock();
        for context in contexts {
            held.leases.remove(&context.lease_token());
        }
    }

    /// Asks every handler to stop.
    pub(crate) fn stop_all(&self, reason: StopReason) {
        for lease in self.lock().leases.values() {
            lease.context.stop().ask(reason);
        }
    }

    /// Gives handlers that were asked to stop no more time.
    pub(crate) fn cut_all(&self) {
        for lease in self.lock().leases.values() {
            lease.context.stop().cut().cancel();
        }
    }

    /// What is still held.
    pub(crate) fn contexts(&self) -> Vec<Context> {
        self.lock().leases.values().map(|lease| lease.context.clone()).collect()
    }

    // Those that are due, or soon will be, so that one call renews many; and when to look again.
    fn take_due(&self, now: Instant) -> (Vec<LeaseToken>, Duration, Instant) {
        let mut held = self.lock();
        let horizon = now + self.interval / 8;
        let mut next = now + self.interval;
        let mut tokens = Vec::new();
        let mut shortest = self.interval;
        for (token, lease) in &held.leases {
            let due = self.due(lease);
            if due <= horizon.min(now + lease.context.lease() / 8) && tokens.len() < MAX_TOKENS {
                tokens.push(*token);
                shortest = shortest.min(lease.context.lease() / 3);
                // Due again a third of the lease from now.
                next = next.min(now + self.interval.min(lease.context.lease() / 3));
            } else {
                next = next.min(due);
            }
        }
        held.next_look = next;
        (tokens, shortest, next)
    }

    // Whether some could not be renewed and should be tried again soon.
    fn learn(
        &self,
        sent: Instant,
        answers: impl Iterator<Item = (LeaseToken, LeaseStatus)>,
        counters: &Counters,
    ) -> bool {
        let mut held = self.lock();
        let mut again = false;
        for (token, status) in answers {
            // Reported meanwhile: nobody is interested any more.
            let Some(lease) = held.leases.get_mut(&token) else { continue };
            match status {
                LeaseStatus::Held(_) => lease.renewed = sent,
                // A transaction has the row, perhaps the handler's own.
                LeaseStatus::Locked(_) => again = true,
                LeaseStatus::Cancel(_) => {
                    lease.renewed = sent;
                    lease.context.stop().ask(StopReason::Cancelled);
                }
                // Its outcome is on its way: accepted already, which also ends a lease, or about to be refused.
                LeaseStatus::Lost if lease.context.has_ended() => drop(held.leases.remove(&token)),
                LeaseStatus::Lost => {
                    counters.lost();
                    about_job!(warn, &lease.context, "the lease is lost");
                    lease.context.stop().ask(StopReason::LeaseLost);
                    held.leases.remove(&token);
                }
            }
        }
        again
    }

    /// Whether the lease of a job that waited for its slot still holds, as far as this node's clock can tell.
    pub(crate) fn holds(&self, context: &Context) -> bool {
        // Most wait for no time at all.
        context.begun().elapsed() < context.lease() / 2
            || self
                .lock()
                .leases
                .get(&context.lease_token())
                .is_some_and(|lease| lease.renewed.elapsed() < context.lease())
    }

    /// Keeps the leases, for ever.
    pub(crate) async fn keep(&self, source: &dyn JobSource, counters: &Counters) {
        let mut failing = false;
        loop {
            let now = Instant::now();
            let (tokens, shortest, mut next) = self.take_due(now);
            if !tokens.is_empty() {
                // Short enough for another try while the shortest lease lasts.
                let patience = shortest.clamp(LEAST_PATIENCE, PATIENCE);
                match tokio::time::timeout(patience, guarded(source.extend(&tokens))).await {
                    Ok(Ok(answers)) => {
                        failing = false;
                        if self.learn(now, tokens.into_iter().zip(answers), counters) {
                            next = next.min(Instant::now() + TRY_AGAIN);
                            self.lock().next_look = next;
                        }
                    }
                    answer => {
                        let error = answer.map_or_else(
                            |_| format!("no answer within {patience:?}"),
                            |answer| answer.err().map(|error| error.to_string()).unwrap_or_default(),
                        );
                        if !std::mem::replace(&mut failing, true) {
                            tracing::warn!(%error, leases = tokens.len(), "leases could not be renewed; trying on");
                        }
                        next = Instant::now() + TRY_AGAIN;
                        self.lock().next_look = next;
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {}
                () = self.sooner.notified() => {}
            }
        }
    }
}
