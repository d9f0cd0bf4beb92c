//! The thread that keeps what a worker has: its leases, its place in the list of workers, and its part in leading.
//!
//! It has a runtime and connections of its own. A handler that blocks the runtime of the application, or a runtime with no
//! thread free, costs no lease and no term.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use orchestrix_coordinator::{Coordinator, CoordinatorOptions, CoordinatorStatus};
use orchestrix_store::{Directive, Result, WorkerInfo};
use tokio::sync::{oneshot, watch};

use crate::{JobSource, worker::Shop};

/// How soon to try again to be known.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// How long to take leave at most.
const LEAVE: Duration = Duration::from_secs(2);

/// The thread, as the rest of the worker sees it. It ends when this is dropped.
pub(crate) struct Keeper {
    stop: watch::Sender<bool>,
    ended: Option<oneshot::Receiver<()>>,
    coordinator: Arc<Mutex<Option<Coordinator>>>,
}

impl Keeper {
    /// Starts the thread; answers when it is at work.
    pub(crate) fn start(
        shop: Arc<Shop>,
        info: WorkerInfo,
        coordinator: Option<CoordinatorOptions>,
    ) -> io::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let (ended, end) = oneshot::channel();
        let place = Arc::new(Mutex::new(None));
        let leads = Arc::clone(&place);
        thread::Builder::new().name("orchestrix-keeper".into()).spawn(move || {
            match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => {
                    runtime.block_on(keep(&shop, &info, coordinator, &leads, stopped));
                    // Connections close in the background; nobody waits for them.
                    runtime.shutdown_timeout(Duration::from_millis(100));
                }
                Err(error) => tracing::error!(%error, "no runtime for heartbeats: leases will be lost"),
            }
            // Nobody waiting is fine.
            let _ = ended.send(());
        })?;
        Ok(Self { stop, ended: Some(end), coordinator: place })
    }

    /// How the coordinator on this thread stands, if there is one.
    pub(crate) fn coordinator(&self) -> Option<CoordinatorStatus> {
        self.coordinator.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Coordinator::status)
    }

    /// Takes leave and ends the thread.
    pub(crate) async fn end(mut self) {
        self.stop.send_replace(true);
        if let Some(ended) = self.ended.take() {
            // The thread is gone either way.
            let _ = ended.await;
        }
    }
}

async fn keep(
    shop: &Shop,
    info: &WorkerInfo,
    coordinator: Option<CoordinatorOptions>,
    place: &Mutex<Option<Coordinator>>,
    mut stopped: watch::Receiver<bool>,
) {
    let source = match shop.source.apart() {
        Ok(source) => source,
        Err(error) => {
            tracing::error!(%error, "no connections for heartbeats: leases will be lost");
            return;
        }
    };
    if let (Some(options), Some(store)) = (coordinator, source.store()) {
        match Coordinator::start(Arc::clone(store), options) {
            Ok(started) => *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(started),
            Err(error) => tracing::error!(%error, "this worker takes no part in leading"),
        }
    }
    tokio::select! {
        () = shop.leases.keep(&*source, &shop.counters) => {}
        () = show(shop, &*source, info) => {}
        // An error means that the worker was dropped.
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    let coordinator = place.lock().unwrap_or_else(PoisonError::into_inner).take();
    let resign = async {
        if let Some(coordinator) = coordinator {
            coordinator.shutdown().await;
        }
    };
    let leave = tokio::time::timeout(LEAVE, source.leave(&info.name));
    let (_, left) = tokio::join!(resign, leave);
    if !matches!(left, Ok(Ok(()))) {
        tracing::debug!("the worker stays listed until it is forgotten");
    }
}

// Shows that the worker lives and learns what it should do, for ever.
async fn show(shop: &Shop, source: &dyn JobSource, info: &WorkerInfo) {
    let mut known = false;
    loop {
        match show_once(shop, source, info, &mut known).await {
            Ok(Some(directive)) => {
                shop.direct(directive);
                tokio::time::sleep(shop.options.heartbeat_interval).await;
            }
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(%error, "the worker could not show itself");
                tokio::time::sleep(TRY_AGAIN).await;
            }
        }
    }
}

async fn show_once(
    shop: &Shop,
    source: &dyn JobSource,
    info: &WorkerInfo,
    known: &mut bool,
) -> Result<Option<Directive>> {
    if !*known {
        source.register(info).await?;
        *known = true;
    }
    let free = u32::try_from(shop.floor.free()).unwrap_or(u32::MAX);
    let directive = source.show(&info.name, free).await?;
    // Forgotten, after a long silence: known anew the next time.
    *known = directive.is_some();
    Ok(directive)
}
