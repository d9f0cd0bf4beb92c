//! A worker that runs, and how it ends.

use std::{fmt, sync::Arc, time::Instant};

use orchestrix_coordinator::CoordinatorStatus;
use orchestrix_core::WorkerName;
use orchestrix_store::{ClaimedJob, Directive, Outcome, Wakeups};
use tokio::{
    runtime::Handle,
    sync::{Notify, mpsc, watch},
};

use crate::{
    Context, Drained, JobSource, WorkerStats,
    complete::{Completer, FinishedAttempt},
    execute::{Stack, execute},
    fetch::Demand,
    floor::Floor,
    keeper::Keeper,
    lease::Leases,
    options::WorkerOptions,
    report::Desk,
    state::States,
    stats::Counters,
    stop::StopReason,
};

/// What the parts of one worker share.
pub(crate) struct Shop {
    pub(crate) source: Arc<dyn JobSource>,
    pub(crate) options: WorkerOptions,
    pub(crate) floor: Floor,
    pub(crate) leases: Arc<Leases>,
    pub(crate) completer: Arc<Completer>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) states: Arc<States>,
    pub(crate) stack: Stack,
    /// Told when the list of workers should show something else of it at once.
    pub(crate) news: Notify,
    /// What an operator last said.
    pub(crate) directive: watch::Sender<Directive>,
    /// Whether whoever runs it should shut it down: it was told to stop, or is gone.
    pub(crate) told_to_stop: watch::Sender<bool>,
    /// Whether it has ended: it holds nothing, and is off the list.
    pub(crate) ended: watch::Sender<bool>,
    /// Where handlers run.
    pub(crate) application: Handle,
}

impl Shop {
    /// Takes in jobs that were leased by a request sent at `begun`, and sets slots to work.
    pub(crate) fn take(self: &Arc<Self>, claimed: Vec<ClaimedJob>, begun: Instant) {
        if claimed.is_empty() {
            return;
        }
        self.counters.add_claimed(claimed.len() as u64);
        let contexts: Vec<Context> = claimed
            .into_iter()
            .map(|job| Context::new(job, begun, Arc::clone(&self.desk), Arc::clone(&self.states)))
            .collect();
        self.leases.add(&contexts);
        match self.floor.take(contexts) {
            Ok(slots) => {
                for _ in 0..slots {
                    self.application.spawn(slot(Arc::clone(self)));
                }
            }
            // They came too late, and go back as they came.
            Err(contexts) => {
                let shop = Arc::clone(self);
                tokio::spawn(async move { shop.release(contexts).await });
            }
        }
    }

    /// Hands back jobs whose end nobody has told yet.
    pub(crate) async fn release(&self, contexts: impl IntoIterator<Item = Context>) {
        for context in contexts {
            if context.end() {
                self.completer.hand_in(FinishedAttempt { context, outcome: Some(Outcome::Release), ran: None }).await;
            }
        }
    }

    pub(crate) fn direct(&self, directive: Directive) {
        // A worker that drains of its own accord is told so, too.
        if self.directive.send_replace(directive) != directive && !self.floor.is_closed() {
            tracing::info!(%directive, "the worker was told what to do");
        }
        if directive == Directive::Stop {
            self.told_to_stop.send_replace(true);
        }
    }

    /// Waits until an operator wants it to take nothing new.
    pub(crate) async fn told_to_drain(&self) {
        // An error would mean that the sender is gone, which this borrow rules out.
        let _ = self.directive.subscribe().wait_for(|directive| *directive != Directive::Run).await;
    }

    /// Tells whoever waits that it has ended.
    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
        self.told_to_stop.send_replace(true);
    }
}

// Works on one job after the other until none is ready.
async fn slot(shop: Arc<Shop>) {
    let mut ended = 0;
    while let Some(context) = shop.floor.next(ended) {
        ended = 1;
        let (outcome, ran) = match shop.leases.holds(&context) {
            true => execute(&shop.stack, &context, &shop.options, &shop.counters).await,
            // Somebody else may have it by now; if not, somebody will.
            false => (Some(Outcome::Release), None),
        };
        if context.end() {
            shop.completer.hand_in(FinishedAttempt { context, outcome, ran }).await;
        }
        // Whoever was just woken waits for this thread: the next handler may block it.
        tokio::task::yield_now().await;
    }
}

/// What the keeper is given.
pub(crate) struct Parts {
    pub(crate) outcomes: mpsc::Receiver<FinishedAttempt>,
    pub(crate) announcements: mpsc::UnboundedReceiver<Context>,
    pub(crate) demand: Demand,
    pub(crate) wakeups: Wakeups,
}

/// A running worker. Dropped without [`shutdown`](Worker::shutdown) it stops at once, and its leases run out.
pub struct Worker {
    pub(crate) shop: Arc<Shop>,
    pub(crate) keeper: Option<Keeper>,
}

impl Worker {
    /// Its name in the list of workers.
    pub fn name(&self) -> &WorkerName {
        &self.shop.options.name
    }

    /// What it has done so far.
    pub fn stats(&self) -> WorkerStats {
        self.shop.counters.read()
    }

    /// How many handlers run now.
    pub fn running(&self) -> usize {
        self.shop.floor.busy()
    }

    /// How its coordinator stands, if it has one.
    pub fn coordinator(&self) -> Option<CoordinatorStatus> {
        self.keeper.as_ref().and_then(Keeper::coordinator)
    }

    /// Waits until there is a reason to [shut it down](Worker::shutdown): an operator told it to stop, or told it to drain and it has ended.
    pub async fn told_to_stop(&self) {
        // An error would mean that the worker is gone, which this borrow rules out.
        let _ = self.shop.told_to_stop.subscribe().wait_for(|stop| *stop).await;
    }

    /// Runs until SIGTERM or SIGINT, or until an operator says so, then [shuts down](Worker::shutdown). A second signal
    /// ends it at once, with `None`.
    ///
    /// A worker that an operator drains hands back what it has not begun, lets what runs take the time that it takes, and ends by itself; a
    /// signal meanwhile is a signal as at any other time.
    pub async fn run_until_signal(self) -> std::io::Result<Option<Drained>> {
        let mut signals = crate::signal::Signals::new()?;
        let mut more = 1;
        tokio::select! {
            name = signals.next() => tracing::info!(signal = name, "shutting down; once more to stop at once"),
            () = self.told_to_stop() => {
                tracing::info!("told to end");
                more = 2;
            }
        }
        let again = async {
            for _ in 0..more {
                let signal = signals.next().await;
                tracing::warn!(signal, "a signal while shutting down");
            }
        };
        tokio::select! {
            drained = self.shutdown() => Ok(Some(drained)),
            () = again => {
                tracing::warn!("stopped at once; leases run out by themselves");
                Ok(None)
            }
        }
    }

    /// Takes nothing new, hands back what no slot has begun, and lets handlers finish until the drain timeout. Those
    /// that are left are asked to stop in time for their grace, and what is left then is handed back: no attempt is spent.
    pub async fn shutdown(mut self) -> Drained {
        match self.keeper.take() {
            Some(keeper) => keeper.drain().await,
            None => Drained::default(),
        }
    }

    /// Waits until it has ended by itself, because an operator drained it: it holds nothing more, is off the list, and takes no part in
    /// leading. [`shutdown`](Worker::shutdown) then answers at once what was left.
    pub async fn ended(&self) {
        self.handle().ended().await;
    }

    /// A handle to watch the worker by, and to end it, from elsewhere.
    pub fn handle(&self) -> WorkerHandle {
        WorkerHandle(Arc::clone(&self.shop))
    }
}

/// A worker seen from elsewhere. Clones are the same.
#[derive(Clone)]
pub struct WorkerHandle(Arc<Shop>);

impl WorkerHandle {
    /// Its name in the list of workers.
    pub fn name(&self) -> &WorkerName {
        &self.0.options.name
    }

    /// What it has done so far.
    pub fn stats(&self) -> WorkerStats {
        self.0.counters.read()
    }

    /// How many handlers run now.
    pub fn running(&self) -> usize {
        self.0.floor.busy()
    }

    /// Whether it takes nothing new any more, because it shuts down.
    pub fn is_ending(&self) -> bool {
        self.0.floor.is_closed()
    }

    /// Waits until it has ended, whoever ended it.
    pub async fn ended(&self) {
        // An error would mean that the sender is gone, which this borrow rules out.
        let _ = self.0.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Makes [`run_until_signal`](Worker::run_until_signal) and [`told_to_stop`](Worker::told_to_stop) end, as a signal or an
    /// operator would.
    pub fn stop(&self) {
        self.0.told_to_stop.send_replace(true);
    }
}

impl fmt::Debug for WorkerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerHandle").field("name", self.name()).field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Their jobs are not told of any more: handlers would work in vain.
        drop(self.shop.floor.close());
        self.shop.leases.stop_all(StopReason::Shutdown);
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("name", self.name()).field("stats", &self.stats()).finish_non_exhaustive()
    }
}
