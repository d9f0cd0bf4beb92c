//! The leases that this worker holds, and extending them.
//!
//! A lease is extended after a third of its duration, or after the heartbeat interval if that is shorter, until its
//! outcome is reported. This runs on the control thread, so handlers that block their threads lose no lease.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use orchestrix_core::LeaseToken;
use orchestrix_store::{LeaseStatus, claim::MAX_TOKENS};
use tokio::sync::Notify;

use crate::{
    Context, JobSource, catch_panic::catch_panic, job_event::job_event, stats::Counters, stop_signal::StopReason,
};

/// The pause after an extension that failed.
const RETRY: Duration = Duration::from_millis(300);
/// The bounds of the time limit of one call, after which it is tried again on another connection.
const MAX_CALL_TIMEOUT: Duration = Duration::from_secs(5);
const MIN_CALL_TIMEOUT: Duration = Duration::from_millis(200);

pub(crate) struct LeaseTable {
    held: Mutex<LeaseEntries>,
    /// Notified when a lease is added that is due before `next_extension`.
    earlier_due: Notify,
    interval: Duration,
}

struct LeaseEntries {
    leases: HashMap<LeaseToken, Lease>,
    next_extension: Instant,
}

struct Lease {
    context: Context,
    /// When the request that last extended the lease was sent.
    extended_at: Instant,
}

impl LeaseTable {
    pub(crate) fn new(interval: Duration) -> Self {
        let held = LeaseEntries { leases: HashMap::new(), next_extension: Instant::now() };
        Self { held: Mutex::new(held), earlier_due: Notify::new(), interval }
    }

    fn lock(&self) -> MutexGuard<'_, LeaseEntries> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn due(&self, lease: &Lease) -> Instant {
        lease.extended_at + self.interval.min(lease.context.lease() / 3)
    }

    pub(crate) fn add(&self, contexts: &[Context]) {
        let mut held = self.lock();
        let mut earliest = held.next_extension;
        for context in contexts {
            let lease = Lease { context: context.clone(), extended_at: context.claimed_at() };
            earliest = earliest.min(self.due(&lease));
            held.leases.insert(context.lease_token(), lease);
        }
        if earliest < held.next_extension {
            self.earlier_due.notify_one();
        }
    }

    pub(crate) fn remove<'a>(&self, contexts: impl IntoIterator<Item = &'a Context>) {
        let mut held = self.lock();
        for context in contexts {
            held.leases.remove(&context.lease_token());
        }
    }

    /// Requests every handler to stop.
    pub(crate) fn stop_all(&self, reason: StopReason) {
        for lease in self.lock().leases.values() {
            lease.context.stop().request(reason);
        }
    }

    /// Ends the grace period of every handler that was requested to stop.
    pub(crate) fn end_grace_periods(&self) {
        for lease in self.lock().leases.values() {
            lease.context.stop().grace_ended().cancel();
        }
    }

    /// The jobs whose leases are held.
    pub(crate) fn contexts(&self) -> Vec<Context> {
        self.lock().leases.values().map(|lease| lease.context.clone()).collect()
    }

    /// Returns the leases that are due or nearly due, so that one call extends many; a third of the shortest of them;
    /// and when to extend next.
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
                next = next.min(now + self.interval.min(lease.context.lease() / 3));
            } else {
                next = next.min(due);
            }
        }
        held.next_extension = next;
        (tokens, shortest, next)
    }

    /// Applies the statuses of extended leases. Returns whether some were locked and should be retried soon.
    fn apply_statuses(
        &self,
        sent: Instant,
        statuses: impl Iterator<Item = (LeaseToken, LeaseStatus)>,
        counters: &Counters,
    ) -> bool {
        let mut held = self.lock();
        let mut retry = false;
        for (token, status) in statuses {
            // The outcome was reported meanwhile.
            let Some(lease) = held.leases.get_mut(&token) else { continue };
            match status {
                LeaseStatus::Held(_) => lease.extended_at = sent,
                // A transaction has locked the row, perhaps the handler's own.
                LeaseStatus::Locked(_) => retry = true,
                LeaseStatus::Cancel(_) => {
                    lease.extended_at = sent;
                    lease.context.stop().request(StopReason::Cancelled);
                }
                // The outcome is being reported: it was accepted, which ends the lease, or it will be refused.
                LeaseStatus::Lost if lease.context.has_ended() => drop(held.leases.remove(&token)),
                LeaseStatus::Lost => {
                    counters.add_leases_lost(1);
                    job_event!(warn, &lease.context, "lease is lost");
                    lease.context.stop().request(StopReason::LeaseLost);
                    held.leases.remove(&token);
                }
            }
        }
        retry
    }

    /// Whether the lease of a job that waited for a slot is still valid, by this machine's clock.
    pub(crate) fn is_valid(&self, context: &Context) -> bool {
        // The common case, without the lock: the job hardly waited.
        context.claimed_at().elapsed() < context.lease() / 2
            || self
                .lock()
                .leases
                .get(&context.lease_token())
                .is_some_and(|lease| lease.extended_at.elapsed() < context.lease())
    }

    /// Extends leases when they are due. Never returns.
    pub(crate) async fn keep_extending(&self, source: &dyn JobSource, counters: &Counters) {
        let mut failing = false;
        loop {
            let now = Instant::now();
            let (tokens, shortest, mut next) = self.take_due(now);
            if !tokens.is_empty() {
                // Short enough for a retry before the shortest lease expires.
                let call_timeout = shortest.clamp(MIN_CALL_TIMEOUT, MAX_CALL_TIMEOUT);
                match tokio::time::timeout(call_timeout, catch_panic(source.extend_leases(&tokens))).await {
                    Ok(Ok(statuses)) => {
                        failing = false;
                        if self.apply_statuses(now, tokens.into_iter().zip(statuses), counters) {
                            next = next.min(Instant::now() + RETRY);
                            self.lock().next_extension = next;
                        }
                    }
                    failed => {
                        let error = failed.map_or_else(
                            |_| format!("no answer within {call_timeout:?}"),
                            |result| result.err().map(|error| error.to_string()).unwrap_or_default(),
                        );
                        if !std::mem::replace(&mut failing, true) {
                            tracing::warn!(%error, leases = tokens.len(), "extending leases failed; retrying");
                        }
                        next = Instant::now() + RETRY;
                        self.lock().next_extension = next;
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => {}
                () = self.earlier_due.notified() => {}
            }
        }
    }
}
