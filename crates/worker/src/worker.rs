//! A running worker, and the state that its parts share.

use std::{fmt, sync::Arc, time::Instant};

use orchestrix_coordinator::CoordinatorStatus;
use orchestrix_core::WorkerName;
use orchestrix_store::{ClaimedJob, Directive, Outcome, Wakeups};
use tokio::{
    runtime::Handle,
    sync::{Notify, mpsc, watch},
};

use crate::{
    Context, Drained, WorkerStats,
    context::ContextShared,
    control_thread::ControlThread,
    execute::{HandlerService, execute},
    fetch::ClaimPlanner,
    lease::LeaseTable,
    options::WorkerOptions,
    outcome_reporter::{FinishedAttempt, OutcomeQueue},
    slot_pool::SlotPool,
    source::JobBackend,
    stats::Counters,
    stop_signal::StopReason,
};

/// The state that all parts of one worker share.
pub(crate) struct WorkerShared {
    pub(crate) backend: JobBackend,
    pub(crate) options: WorkerOptions,
    pub(crate) slots: SlotPool,
    pub(crate) leases: Arc<LeaseTable>,
    pub(crate) outcomes: Arc<OutcomeQueue>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) contexts: Arc<ContextShared>,
    pub(crate) service: HandlerService,
    /// Makes the control thread send a worker heartbeat at once.
    pub(crate) heartbeat_now: Notify,
    /// The operator's latest directive.
    pub(crate) directive: watch::Sender<Directive>,
    /// Whether the owner of the worker should shut it down: an operator stopped it, or it has ended.
    pub(crate) stop_requested: watch::Sender<bool>,
    /// Whether the worker has ended: it holds no job and is no longer registered.
    pub(crate) ended: watch::Sender<bool>,
    /// The runtime that handlers run on.
    pub(crate) application: Handle,
}

impl WorkerShared {
    /// Queues claimed jobs for the slots, and starts idle slots. `claimed_at` is when the claim request was sent.
    pub(crate) fn accept_jobs(self: &Arc<Self>, claimed: Vec<ClaimedJob>, claimed_at: Instant) {
        if claimed.is_empty() {
            return;
        }
        self.counters.add_claimed(claimed.len() as u64);
        let contexts: Vec<Context> =
            claimed.into_iter().map(|job| Context::new(job, claimed_at, Arc::clone(&self.contexts))).collect();
        self.leases.add(&contexts);
        match self.slots.push(contexts) {
            Ok(started) => {
                for _ in 0..started {
                    self.application.spawn(run_slot(Arc::clone(self)));
                }
            }
            // The worker began to drain while the claim was in flight.
            Err(contexts) => {
                let shared = Arc::clone(self);
                tokio::spawn(async move { shared.release_jobs(contexts).await });
            }
        }
    }

    /// Releases jobs whose outcome no one has submitted yet.
    pub(crate) async fn release_jobs(&self, contexts: impl IntoIterator<Item = Context>) {
        for context in contexts {
            if context.try_end() {
                let outcome = Some(Outcome::Release);
                self.outcomes.submit(FinishedAttempt { context, outcome, ran: None }).await;
            }
        }
    }

    pub(crate) fn apply_directive(&self, directive: Directive) {
        // While the worker drains on its own, its heartbeats return `drain` too: that is not an operator's directive.
        if self.directive.send_replace(directive) != directive && !self.slots.is_closed() {
            tracing::info!(%directive, "worker received a directive");
        }
        if directive == Directive::Stop {
            self.stop_requested.send_replace(true);
        }
    }

    /// Waits until an operator drains or stops the worker.
    pub(crate) async fn drain_requested(&self) {
        // Cannot fail: `self` keeps the sender alive.
        let _ = self.directive.subscribe().wait_for(|directive| *directive != Directive::Run).await;
    }

    pub(crate) fn mark_ended(&self) {
        self.ended.send_replace(true);
        self.stop_requested.send_replace(true);
    }
}

/// Runs queued jobs one after the other until the queue is empty.
async fn run_slot(shared: Arc<WorkerShared>) {
    let mut finished = 0;
    while let Some(context) = shared.slots.next(finished) {
        finished = 1;
        let (outcome, ran) = match shared.leases.is_valid(&context) {
            true => execute(&shared.service, &context, &shared.options, &shared.counters).await,
            // The lease ran out while the job waited for its slot: another worker may own the job.
            false => (Some(Outcome::Release), None),
        };
        if context.try_end() {
            shared.outcomes.submit(FinishedAttempt { context, outcome, ran }).await;
        }
        // Lets tasks that this attempt woke run on this thread: the next handler may block it.
        tokio::task::yield_now().await;
    }
}

/// The receiving ends that the control thread owns.
pub(crate) struct ControlInputs {
    pub(crate) outcomes: mpsc::Receiver<FinishedAttempt>,
    pub(crate) flush_requests: mpsc::UnboundedReceiver<Context>,
    pub(crate) planner: ClaimPlanner,
    pub(crate) wakeups: Wakeups,
}

/// A running worker.
///
/// Call [`shutdown`](Worker::shutdown) to end it gracefully. Dropping it stops it at once; its leases then expire.
pub struct Worker {
    pub(crate) shared: Arc<WorkerShared>,
    pub(crate) control: Option<ControlThread>,
}

impl Worker {
    /// The worker's registered name.
    pub fn name(&self) -> &WorkerName {
        &self.shared.options.name
    }

    /// The worker's counters since its start.
    pub fn stats(&self) -> WorkerStats {
        self.shared.counters.read()
    }

    /// The number of handlers that are running.
    pub fn running(&self) -> usize {
        self.shared.slots.busy()
    }

    /// The status of the worker's coordinator, if it runs one.
    pub fn coordinator(&self) -> Option<CoordinatorStatus> {
        self.control.as_ref().and_then(ControlThread::coordinator)
    }

    /// Waits until the worker should be [shut down](Worker::shutdown): an operator stopped it, or an operator drained
    /// it and it has ended.
    pub async fn stop_requested(&self) {
        // Cannot fail: `self` keeps the sender alive.
        let _ = self.shared.stop_requested.subscribe().wait_for(|stop| *stop).await;
    }

    /// Runs until SIGTERM, SIGINT or an operator's stop, then [shuts down](Worker::shutdown). A second signal aborts
    /// the shutdown and returns `None`.
    ///
    /// An operator's drain releases the queued jobs, waits for the running ones without a time limit, and then ends the
    /// worker. A signal during that drain starts the shutdown.
    pub async fn run_until_signal(self) -> std::io::Result<Option<Drained>> {
        let mut signals = crate::signal::Signals::new()?;
        let mut signals_to_abort = 1;
        tokio::select! {
            signal = signals.next() => tracing::info!(signal, "shutting down; send another signal to abort"),
            () = self.stop_requested() => {
                tracing::info!("shutting down: stop requested");
                signals_to_abort = 2;
            }
        }
        let abort = async {
            for _ in 0..signals_to_abort {
                let signal = signals.next().await;
                tracing::warn!(signal, "received a signal during shutdown");
            }
        };
        tokio::select! {
            drained = self.shutdown() => Ok(Some(drained)),
            () = abort => {
                tracing::warn!("shutdown aborted; held leases expire on their own");
                Ok(None)
            }
        }
    }

    /// Stops claiming, releases jobs that no slot has started, and waits for running handlers up to the drain timeout.
    ///
    /// Handlers that are still running near the end are cancelled in time for their grace period. Their jobs are
    /// released, which costs no attempt.
    pub async fn shutdown(mut self) -> Drained {
        match self.control.take() {
            Some(control) => control.drain().await,
            None => Drained::default(),
        }
    }

    /// Waits until the worker has ended because an operator drained it: it holds no job, is no longer registered and no
    /// longer campaigns for leadership. [`shutdown`](Worker::shutdown) then returns at once.
    pub async fn ended(&self) {
        self.handle().ended().await;
    }

    /// A handle to observe and stop the worker from elsewhere.
    pub fn handle(&self) -> WorkerHandle {
        WorkerHandle(Arc::clone(&self.shared))
    }
}

/// A cheap, cloneable handle to a running [`Worker`].
#[derive(Clone)]
pub struct WorkerHandle(Arc<WorkerShared>);

impl WorkerHandle {
    /// The worker's registered name.
    pub fn name(&self) -> &WorkerName {
        &self.0.options.name
    }

    /// The worker's counters since its start.
    pub fn stats(&self) -> WorkerStats {
        self.0.counters.read()
    }

    /// The number of handlers that are running.
    pub fn running(&self) -> usize {
        self.0.slots.busy()
    }

    /// Whether the worker has stopped claiming because it drains.
    pub fn is_draining(&self) -> bool {
        self.0.slots.is_closed()
    }

    /// Waits until the worker has ended, for any reason.
    pub async fn ended(&self) {
        // Cannot fail: `self` keeps the sender alive.
        let _ = self.0.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Requests a stop: [`run_until_signal`](Worker::run_until_signal) shuts the worker down, and
    /// [`stop_requested`](Worker::stop_requested) returns.
    pub fn stop(&self) {
        self.0.stop_requested.send_replace(true);
    }
}

impl fmt::Debug for WorkerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerHandle").field("name", self.name()).field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // No one reports outcomes any more, so handlers need not finish.
        drop(self.shared.slots.close());
        self.shared.leases.stop_all(StopReason::Shutdown);
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("name", self.name()).field("stats", &self.stats()).finish_non_exhaustive()
    }
}
