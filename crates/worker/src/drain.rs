//! Winding a worker down.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use crate::{stop::StopReason, worker::Shop};

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

/// Takes nothing new, hands back what no slot has begun, and lets handlers finish: for as long as they take, until `hurry` becomes true, and
/// from then on until the drain timeout. Those that are left are asked to stop in time for their grace, dropped at the end of it, and their
/// jobs handed back. Whoever calls keeps the leases all the while.
pub(crate) async fn drain(
    shop: &Arc<Shop>,
    stop_fetching: &watch::Sender<bool>,
    fetcher: JoinHandle<()>,
    mut hurry: watch::Receiver<bool>,
) -> Drained {
    let released = shop.counters.read().released;
    stop_fetching.send_replace(true);
    let unbegun = shop.floor.close();
    // Those who look at the list should see it now, and not only with the next heartbeat.
    shop.news.notify_one();
    // A claim under way is waited for: the floor is closed, so what it gives is handed back.
    let quiet = async { drop(tokio::join!(fetcher, shop.release(unbegun), shop.floor.idle())) };
    tokio::pin!(quiet);
    let mut is_quiet = false;
    let all_done = async {
        quiet.as_mut().await;
        is_quiet = true;
        shop.completer.all_told().await;
    };
    let hurried = tokio::select! {
        biased;
        () = all_done => Ok(false),
        told = hurry.wait_for(|hurry| *hurry) => told.map(|_| true),
    };
    let untold = match hurried {
        Ok(false) => 0,
        Ok(true) => {
            let deadline = Instant::now() + shop.options.drain_timeout;
            if !is_quiet {
                hurry_up(shop, quiet, deadline).await;
            }
            match timeout(LAST_WORDS, shop.completer.all_told()).await {
                Ok(()) => 0,
                Err(_) => shop.completer.open(),
            }
        }
        // The worker was dropped: at once.
        Err(_) => return Drained::default(),
    };
    if untold > 0 {
        tracing::warn!(outcomes = untold, "outcomes could not be told; their leases run out");
    }
    Drained { released: shop.counters.read().released - released, untold }
}

async fn hurry_up(shop: &Shop, quiet: impl Future<Output = ()>, deadline: Instant) {
    let grace = shop.options.cancel_grace.min(shop.options.drain_timeout / 2);
    if timeout_at(deadline - grace, quiet).await.is_ok() {
        return;
    }
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
