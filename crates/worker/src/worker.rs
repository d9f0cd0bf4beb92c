//! A worker that runs, and how it ends.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use orchestrix_coordinator::CoordinatorStatus;
use orchestrix_core::WorkerName;
use orchestrix_store::{Claimed, Directive, Verdict};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::timeout_at,
};

use crate::{
    Context, JobSource, WorkerStats,
    complete::{Completer, Outcome},
    execute::{Stack, execute},
    floor::Floor,
    keeper::Keeper,
    lease::Leases,
    options::WorkerOptions,
    report::Desk,
    state::States,
    stats::Counters,
    stop::StopReason,
};

/// How long the last outcomes may take to be told once all handlers are done.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How long handlers that can be dropped take to be dropped, at most.
const CUT: Duration = Duration::from_millis(500);

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
    /// Told when an operator said something new.
    pub(crate) directed: Notify,
    pub(crate) directive: AtomicU8,
    pub(crate) told_to_stop: watch::Sender<bool>,
}

impl Shop {
    /// Takes in jobs that were leased by a request sent at `begun`, and sets slots to work.
    pub(crate) fn take(self: &Arc<Self>, claimed: Vec<Claimed>, begun: Instant) {
        if claimed.is_empty() {
            return;
        }
        self.counters.add_claimed(claimed.len() as u64);
        let contexts: Vec<Context> = claimed
            .into_iter()
            .map(|job| Context::new(job, begun, Arc::clone(&self.desk), Arc::clone(&self.states)))
            .collect();
        self.leases.add(&contexts);
        for _ in 0..self.floor.take(contexts) {
            tokio::spawn(slot(Arc::clone(self)));
        }
    }

    pub(crate) fn direct(&self, directive: Directive) {
        let code = match directive {
            Directive::Run => 0,
            Directive::Drain => 1,
            Directive::Stop => 2,
        };
        if self.directive.swap(code, Ordering::SeqCst) != code {
            tracing::info!(%directive, "the worker was told what to do");
            self.directed.notify_one();
            if directive == Directive::Stop {
                self.told_to_stop.send_replace(true);
            }
        }
    }

    /// Whether an operator wants it to take nothing new.
    pub(crate) fn is_draining(&self) -> bool {
        self.directive.load(Ordering::SeqCst) != 0
    }
}

// Works on one job after the other until none is ready.
async fn slot(shop: Arc<Shop>) {
    let mut ended = 0;
    while let Some(context) = shop.floor.next(ended) {
        ended = 1;
        let verdict = execute(shop.stack.clone(), &context, shop.options.cancel_grace, &shop.counters).await;
        if context.end() {
            shop.completer.hand_in(Outcome { context, verdict }).await;
        }
        // Handlers that never wait would keep the thread to themselves.
        tokio::task::coop::consume_budget().await;
    }
}

/// A running worker. Dropped without [`shutdown`](Worker::shutdown) it stops at once, and its leases run out.
pub struct Worker {
    pub(crate) shop: Arc<Shop>,
    pub(crate) keeper: Option<Keeper>,
    pub(crate) fetcher: Option<JoinHandle<()>>,
    pub(crate) stop_fetching: watch::Sender<bool>,
    pub(crate) give_up: watch::Sender<bool>,
    pub(crate) tasks: Vec<JoinHandle<()>>,
}

/// What was left when a worker had shut down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Drained {
    /// Jobs that were handed back, begun or not. They cost no attempt.
    pub released: u64,
    /// Outcomes that could not be told: the source was away. Their leases run out and the jobs run again.
    pub untold: usize,
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

    /// Waits until an operator tells this worker to stop.
    pub async fn told_to_stop(&self) {
        // An error would mean that the worker is gone, which this borrow rules out.
        let _ = self.shop.told_to_stop.subscribe().wait_for(|stop| *stop).await;
    }

    /// Runs until SIGTERM or SIGINT, or until an operator says so, then [shuts down](Worker::shutdown). A second signal
    /// ends it at once, with `None`.
    pub async fn run_until_signal(self) -> std::io::Result<Option<Drained>> {
        let mut signals = crate::signal::Signals::new()?;
        tokio::select! {
            name = signals.next() => tracing::info!(signal = name, "shutting down; once more to stop at once"),
            () = self.told_to_stop() => tracing::info!("told to stop"),
        }
        tokio::select! {
            drained = self.shutdown() => Ok(Some(drained)),
            name = signals.next() => {
                tracing::warn!(signal = name, "stopped at once; leases run out by themselves");
                Ok(None)
            }
        }
    }

    /// Takes nothing new, hands back what no slot has begun, and lets handlers finish until the drain timeout. Those
    /// that are left are asked to stop in time for their grace, and what is left then is handed back: no attempt is spent.
    pub async fn shutdown(mut self) -> Drained {
        let shop = Arc::clone(&self.shop);
        let deadline = tokio::time::Instant::now() + shop.options.drain_timeout;
        let grace = shop.options.cancel_grace.min(shop.options.drain_timeout / 2);
        let mut drained = Drained::default();
        let released = self.stats().released;

        self.stop_fetching.send_replace(true);
        if let Some(fetcher) = self.fetcher.take() {
            // A claim under way gives jobs that would have to wait for their leases to run out.
            let _ = timeout_at(deadline, fetcher).await;
        }
        let unbegun = shop.floor.close();
        self.release(unbegun, deadline).await;

        if timeout_at(deadline - grace, shop.floor.idle()).await.is_err() {
            tracing::info!(running = shop.floor.busy(), "asking handlers to stop");
            shop.leases.stop_all(StopReason::Shutdown);
            let _ = timeout_at(deadline, shop.floor.idle()).await;
            // A job is handed back when its handler is gone, not before: others may begin it at once.
            shop.leases.cut_all();
            if tokio::time::timeout(CUT, shop.floor.idle()).await.is_err() {
                // They block their thread: nothing can take it from them but the end of the process.
                tracing::warn!(running = shop.floor.busy(), "handlers do not stop; their jobs are handed back");
                self.release(shop.leases.contexts(), deadline + LAST_WORDS).await;
            }
        }
        if tokio::time::timeout(LAST_WORDS, shop.completer.all_told()).await.is_err() {
            drained.untold = shop.completer.open();
            tracing::warn!(outcomes = drained.untold, "outcomes could not be told; their leases run out");
        }
        drained.released = self.stats().released - released;
        self.give_up.send_replace(true);
        if let Some(keeper) = self.keeper.take() {
            keeper.end().await;
        }
        drained
    }

    async fn release(&self, contexts: Vec<Context>, deadline: tokio::time::Instant) {
        for context in contexts {
            if context.end() {
                let outcome = Outcome { context, verdict: Some(Verdict::Release) };
                // Past the deadline its lease runs out by itself.
                let _ = timeout_at(deadline, self.shop.completer.hand_in(outcome)).await;
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.give_up.send_replace(true);
        self.shop.floor.close();
        self.shop.leases.stop_all(StopReason::Shutdown);
        if let Some(fetcher) = &self.fetcher {
            fetcher.abort();
        }
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("name", self.name()).field("stats", &self.stats()).finish_non_exhaustive()
    }
}
