//! Draining a worker: a graceful shutdown.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use crate::{stop_signal::StopReason, worker::WorkerShared};

/// The time limit for reporting the last outcomes once all handlers have ended.
pub(crate) const FINAL_REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit for dropping handlers whose grace period is over.
const DROP_TIMEOUT: Duration = Duration::from_millis(500);

/// The result of a worker's shutdown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Drained {
    /// Jobs that the worker released, started or not. A released job costs no attempt.
    pub released: u64,
    /// Outcomes that the worker could not report because the source was unavailable. The leases of these jobs expire
    /// and the jobs run again.
    pub unreported: usize,
}

/// Drains the worker: stops fetching, releases jobs that no slot has started, and waits for running handlers.
///
/// Handlers have no time limit until `shutdown` becomes true, and the drain timeout from then on. Handlers that still
/// run near its end are cancelled, dropped after their grace period, and their jobs released. The caller extends leases
/// meanwhile.
pub(crate) async fn drain(
    shared: &Arc<WorkerShared>,
    stop_fetching: &watch::Sender<bool>,
    fetcher: JoinHandle<()>,
    mut shutdown: watch::Receiver<bool>,
) -> Drained {
    let released_before = shared.counters.read().released;
    stop_fetching.send_replace(true);
    let queued = shared.slots.close();
    // Shows the worker as draining now rather than at the next heartbeat.
    shared.heartbeat_now.notify_one();
    // Waits for a claim in flight: the pool is closed, so its jobs are released.
    let handlers_done = async { drop(tokio::join!(fetcher, shared.release_jobs(queued), shared.slots.wait_idle())) };
    tokio::pin!(handlers_done);
    let mut handlers_are_done = false;
    let all_done = async {
        handlers_done.as_mut().await;
        handlers_are_done = true;
        shared.outcomes.wait_reported().await;
    };
    let shutdown_requested = tokio::select! {
        biased;
        () = all_done => Ok(false),
        requested = shutdown.wait_for(|shutdown| *shutdown) => requested.map(|_| true),
    };
    let unreported = match shutdown_requested {
        Ok(false) => 0,
        Ok(true) => {
            let deadline = Instant::now() + shared.options.drain_timeout;
            if !handlers_are_done {
                stop_handlers(shared, handlers_done, deadline).await;
            }
            match timeout(FINAL_REPORT_TIMEOUT, shared.outcomes.wait_reported()).await {
                Ok(()) => 0,
                Err(_) => shared.outcomes.unreported(),
            }
        }
        // The `Worker` was dropped: stop at once.
        Err(_) => return Drained::default(),
    };
    if unreported > 0 {
        tracing::warn!(unreported, "shut down with unreported outcomes; their leases expire and the jobs run again");
    }
    Drained { released: shared.counters.read().released - released_before, unreported }
}

/// Waits for handlers until `deadline` minus the grace period, then cancels them and releases their jobs.
async fn stop_handlers(shared: &WorkerShared, handlers_done: impl Future<Output = ()>, deadline: Instant) {
    let grace = shared.options.cancel_grace.min(shared.options.drain_timeout / 2);
    if timeout_at(deadline - grace, handlers_done).await.is_ok() {
        return;
    }
    tracing::info!(running = shared.slots.busy(), "cancelling handlers: the drain timeout is near");
    shared.leases.stop_all(StopReason::Shutdown);
    let _ = timeout_at(deadline, shared.slots.wait_idle()).await;
    // A job is released only after its handler is dropped: another worker may start it at once.
    shared.leases.end_grace_periods();
    if timeout(DROP_TIMEOUT, shared.slots.wait_idle()).await.is_err() {
        // These handlers block their threads and cannot be dropped before the process ends.
        tracing::warn!(running = shared.slots.busy(), "handlers ignored cancellation; releasing their jobs");
        let _ = timeout(FINAL_REPORT_TIMEOUT, shared.release_jobs(shared.leases.contexts())).await;
    }
}
