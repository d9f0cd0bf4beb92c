//! Winding a worker down.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use crate::{JobSource, stop::StopReason, worker::Shop};

/// How long the last outcomes may take to be told once all handlers are done.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long handlers whose grace is over may take to be dropped.
const CUT: Duration = Duration::from_millis(500);

/// What was left when a worker had shut down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Drained {
    /// Jobs that were handed back, begun or not. They cost no attempt.
    pub released: u64,
    /// Outcomes that could not be told: the source was away. Their leases run out and the jobs run again.
    pub untold: usize,
}

/// Takes nothing new, hands back what no slot has begun, and lets handlers finish until the drain timeout. Those that are left
/// are asked to stop in time for their grace, dropped at the end of it, and their jobs handed back. Leases are kept all the
/// while.
pub(crate) async fn drain(
    shop: &Arc<Shop>,
    source: &dyn JobSource,
    stop_fetching: &watch::Sender<bool>,
    fetcher: JoinHandle<()>,
) -> Drained {
    let done = async {
        let deadline = Instant::now() + shop.options.drain_timeout;
        let grace = shop.options.cancel_grace.min(shop.options.drain_timeout / 2);
        let released = shop.counters.read().released;

        stop_fetching.send_replace(true);
        let unbegun = shop.floor.close();
        // A claim under way is waited for: the floor is closed, so what it gives is handed back.
        let quiet = async { tokio::join!(fetcher, shop.release(unbegun), shop.floor.idle()) };
        if timeout_at(deadline - grace, quiet).await.is_err() {
            tracing::info!(running = shop.floor.busy(), "asking handlers to stop");
            shop.leases.stop_all(StopReason::Shutdown);
            let _ = timeout_at(deadline, shop.floor.idle()).await;
            // A job is handed back when its handler is gone, not before: others may begin it at once.
            shop.leases.cut_all();
            if timeout(CUT, shop.floor.idle()).await.is_err() {
                // They block their thread: nothing can take it from them but the end of the process.
                tracing::warn!(running = shop.floor.busy(), "handlers do not stop; their jobs are handed back");
                let _ = timeout(LAST_WORDS, shop.release(shop.leases.contexts())).await;
            }
        }
        let untold = match timeout(LAST_WORDS, shop.completer.all_told()).await {
            Ok(()) => 0,
            Err(_) => shop.completer.open(),
        };
        if untold > 0 {
            tracing::warn!(outcomes = untold, "outcomes could not be told; their leases run out");
        }
        Drained { released: shop.counters.read().released - released, untold }
    };
    tokio::select! {
        drained = done => drained,
        () = shop.leases.keep(source, &shop.counters) => Drained::default(),
    }
}
