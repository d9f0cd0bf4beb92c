//! The thread that does all but the handlers' own work: it fetches, tells outcomes, keeps leases, shows that the worker lives,
//! takes part in leading, and winds the worker down.
//!
//! It has a runtime and connections of its own. Handlers that block the runtime of the application, even all its threads,
//! cost no lease, no outcome and no term, and cannot hold up a shutdown.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use orchestrix_coordinator::{Coordinator, CoordinatorOptions, CoordinatorStatus};
use orchestrix_store::{Directive, Presence, Result, WorkerInfo};
use tokio::sync::{oneshot, watch};

use crate::{
    Drained, JobSource, WorkerError,
    complete::Reporter,
    drain::{self, LAST_WORDS},
    fetch,
    guard::guarded,
    report,
    worker::{Parts, Shop},
};

/// How soon to try again to be known.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// How long to take leave at most.
const LEAVE: Duration = Duration::from_secs(2);

/// The thread, as the rest of the worker sees it. It ends when this is dropped.
pub(crate) struct Keeper {
    drain: watch::Sender<bool>,
    drained: oneshot::Receiver<Drained>,
    coordinator: Arc<Mutex<Option<Coordinator>>>,
}

/// What is said about a worker, and how it takes part in leading.
pub(crate) struct Role {
    pub(crate) info: WorkerInfo,
    pub(crate) coordinator: Option<CoordinatorOptions>,
}

impl Keeper {
    /// Starts the thread; answers when it has its connections.
    pub(crate) fn start(shop: Arc<Shop>, parts: Parts, role: Role) -> Result<Self, WorkerError> {
        let (begun, begins) = std::sync::mpsc::channel();
        let (drain, draining) = watch::channel(false);
        let (tell, drained) = oneshot::channel();
        let place = Arc::new(Mutex::new(None));
        let leads = Arc::clone(&place);
        thread::Builder::new().name("orchestrix-keeper".into()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(begun.send(Err(WorkerError::System(error)))),
            };
            let source = match runtime.block_on(async { shop.source.apart() }) {
                Ok(source) => source,
                Err(error) => return drop(begun.send(Err(WorkerError::Store(error)))),
            };
            // Whoever started us may be gone already, then and in the end.
            let _ = begun.send(Ok(()));
            let drained = runtime.block_on(keep(&shop, source, parts, role, &leads, draining));
            // Connections close in the background; nobody waits for them.
            runtime.shutdown_timeout(Duration::from_millis(100));
            let _ = tell.send(drained);
            // Whoever did not ask for it hears of it too.
            shop.end();
        })?;
        begins.recv().map_err(io::Error::other)??;
        Ok(Self { drain, drained, coordinator: place })
    }

    /// How the coordinator on this thread stands, if there is one.
    pub(crate) fn coordinator(&self) -> Option<CoordinatorStatus> {
        self.coordinator.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Coordinator::status)
    }

    /// Winds the worker down and ends the thread.
    pub(crate) async fn drain(self) -> Drained {
        self.drain.send_replace(true);
        // The thread is gone only if it panicked.
        self.drained.await.unwrap_or_default()
    }
}

async fn keep(
    shop: &Arc<Shop>,
    source: Arc<dyn JobSource>,
    parts: Parts,
    role: Role,
    place: &Mutex<Option<Coordinator>>,
    mut draining: watch::Receiver<bool>,
) -> Drained {
    if let (Some(options), Some(store)) = (role.coordinator, source.store()) {
        match Coordinator::start(Arc::clone(store), options) {
            Ok(started) => *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(started),
            Err(error) => tracing::error!(%error, "this worker takes no part in leading"),
        }
    }
    let (stop_fetching, stopped) = watch::channel(false);
    let reporter = Reporter {
        source: Arc::clone(&source),
        completer: Arc::clone(&shop.completer),
        leases: Arc::clone(&shop.leases),
        counters: Arc::clone(&shop.counters),
    };
    tokio::spawn(async move { reporter.run(parts.outcomes).await });
    tokio::spawn(report::run(Arc::clone(&source), parts.announcements));
    let fetcher = tokio::spawn(fetch::run(Arc::clone(shop), Arc::clone(&source), parts.demand, parts.wakeups, stopped));
    let (stop_showing, gone) = watch::channel(false);
    let showing = show(shop, &*source, &role.info, gone);
    tokio::pin!(showing);
    let ending = async {
        let dropped = tokio::select! {
            told = draining.wait_for(|drain| *drain) => told.is_err(),
            () = shop.told_to_drain() => false,
        };
        match dropped {
            true => Drained::default(),
            false => drain::drain(shop, &stop_fetching, fetcher, draining.clone()).await,
        }
    };
    // To the end leases are kept and the worker is shown: one that drains works.
    let drained = tokio::select! {
        () = shop.leases.keep(&*source, &shop.counters) => Drained::default(),
        () = &mut showing => Drained::default(),
        drained = ending => drained,
    };
    let coordinator = place.lock().unwrap_or_else(PoisonError::into_inner).take();
    let resign = async {
        if let Some(coordinator) = coordinator {
            coordinator.shutdown().await;
        }
    };
    stop_showing.send_replace(true);
    let leave = tokio::time::timeout(LEAVE, async {
        // A sign of life that is on its way would make it known once more.
        showing.await;
        source.leave(&role.info).await
    });
    if tokio::time::timeout(LAST_WORDS, async { tokio::join!(resign, leave) }).await.is_err() {
        tracing::debug!("the worker stays listed until it is forgotten");
    }
    drained
}

// Shows that the worker lives and learns what it should do, until it is gone.
async fn show(shop: &Shop, source: &dyn JobSource, info: &WorkerInfo, mut gone: watch::Receiver<bool>) {
    let mut known = false;
    while !*gone.borrow_and_update() {
        let pause = match guarded(show_once(shop, source, info, &mut known)).await {
            Ok(Some(directive)) => {
                shop.direct(directive);
                shop.options.heartbeat_interval
            }
            // Forgotten, after a long silence: made known anew.
            Ok(None) => TRY_AGAIN,
            Err(error) => {
                tracing::debug!(%error, "the worker could not show itself");
                // It may have been forgotten meanwhile, and over HTTP nobody would say so. The same said again changes nothing.
                known = false;
                TRY_AGAIN
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shop.news.notified() => {}
            _ = gone.changed() => {}
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
    let draining = shop.floor.is_closed();
    let free = if draining { 0 } else { u32::try_from(shop.floor.free()).unwrap_or(u32::MAX) };
    let presence = Presence { free_slots: Some(free), draining, instance: info.instance.clone() };
    let directive = source.show(&info.name, presence).await?;
    *known = directive.is_some();
    Ok(directive)
}
