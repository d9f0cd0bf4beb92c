//! The control thread: everything a worker does except running handlers. It fetches jobs, reports outcomes, extends
//! leases, sends worker heartbeats, runs the coordinator and drains the worker.
//!
//! It has its own Tokio runtime and its own connections. Handlers that block every thread of the application's runtime
//! cost no lease, no outcome and no leadership term, and cannot delay a shutdown.

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
    catch_panic::catch_panic,
    drain::{self, FINAL_REPORT_TIMEOUT},
    fetch, log_writer,
    outcome_reporter::OutcomeReporter,
    source::JobBackend,
    worker::{ControlInputs, WorkerShared},
};

/// The pause after a registration or a heartbeat that failed.
const HEARTBEAT_RETRY: Duration = Duration::from_millis(500);
/// The time limit for removing the worker's registration.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(2);

/// A handle to the control thread. The thread ends when the handle is dropped.
pub(crate) struct ControlThread {
    drain: watch::Sender<bool>,
    drained: oneshot::Receiver<Drained>,
    coordinator: CoordinatorSlot,
}

/// Holds the coordinator while it runs, so that other threads can read its status.
type CoordinatorSlot = Arc<Mutex<Option<Coordinator>>>;

/// How the worker registers, and the options of its coordinator.
pub(crate) struct Registration {
    pub(crate) info: WorkerInfo,
    pub(crate) coordinator: Option<CoordinatorOptions>,
}

impl ControlThread {
    /// Starts the thread. Returns once it has created its runtime and its connections.
    pub(crate) fn start(
        shared: Arc<WorkerShared>,
        inputs: ControlInputs,
        registration: Registration,
    ) -> Result<Self, WorkerError> {
        let (ready, started) = std::sync::mpsc::channel();
        let (drain, draining) = watch::channel(false);
        let (send_drained, drained) = oneshot::channel();
        let coordinator = CoordinatorSlot::default();
        let slot = Arc::clone(&coordinator);
        thread::Builder::new().name("orchestrix-control".into()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(ready.send(Err(WorkerError::System(error)))),
            };
            let backend = match runtime.block_on(async { shared.backend.dedicated_handle() }) {
                Ok(backend) => backend,
                Err(error) => return drop(ready.send(Err(WorkerError::Store(error)))),
            };
            // The starting thread may be gone already; so may the receiver of the result below.
            let _ = ready.send(Ok(()));
            let drained = runtime.block_on(control(&shared, backend, inputs, registration, &slot, draining));
            // Connections close in the background.
            runtime.shutdown_timeout(Duration::from_millis(100));
            let _ = send_drained.send(drained);
            shared.mark_ended();
        })?;
        started.recv().map_err(io::Error::other)??;
        Ok(Self { drain, drained, coordinator })
    }

    /// The status of the coordinator on this thread, if it runs one.
    pub(crate) fn coordinator(&self) -> Option<CoordinatorStatus> {
        self.coordinator.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Coordinator::status)
    }

    /// Drains the worker and ends the thread.
    pub(crate) async fn drain(self) -> Drained {
        self.drain.send_replace(true);
        // The sender is gone only if the thread panicked.
        self.drained.await.unwrap_or_default()
    }
}

async fn control(
    shared: &Arc<WorkerShared>,
    backend: JobBackend,
    inputs: ControlInputs,
    registration: Registration,
    slot: &Mutex<Option<Coordinator>>,
    mut draining: watch::Receiver<bool>,
) -> Drained {
    if let (Some(options), Some(store)) = (registration.coordinator, backend.store()) {
        match Coordinator::start(Arc::clone(store), options) {
            Ok(started) => *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(started),
            Err(error) => {
                tracing::error!(%error, "coordinator did not start; this worker does not campaign for leadership");
            }
        }
    }
    let source = backend.source();
    let (stop_fetching, fetching_stopped) = watch::channel(false);
    let reporter = OutcomeReporter {
        source: Arc::clone(&source),
        queue: Arc::clone(&shared.outcomes),
        leases: Arc::clone(&shared.leases),
        counters: Arc::clone(&shared.counters),
    };
    tokio::spawn(async move { reporter.run(inputs.outcomes).await });
    tokio::spawn(log_writer::run(Arc::clone(&source), inputs.flush_requests));
    let fetcher = fetch::run(Arc::clone(shared), Arc::clone(&source), inputs.planner, inputs.wakeups, fetching_stopped);
    let fetcher = tokio::spawn(fetcher);
    let (stop_heartbeats, heartbeats_stopped) = watch::channel(false);
    let heartbeats = send_heartbeats(shared, &*source, &registration.info, heartbeats_stopped);
    tokio::pin!(heartbeats);
    let drain = async {
        let dropped = tokio::select! {
            requested = draining.wait_for(|drain| *drain) => requested.is_err(),
            () = shared.drain_requested() => false,
        };
        match dropped {
            true => Drained::default(),
            false => drain::drain(shared, &stop_fetching, fetcher, draining.clone()).await,
        }
    };
    // A draining worker still runs jobs: it extends leases and sends heartbeats to the end.
    let drained = tokio::select! {
        () = shared.leases.keep_extending(&*source, &shared.counters) => Drained::default(),
        () = &mut heartbeats => Drained::default(),
        drained = drain => drained,
    };
    let coordinator = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    let resign = async {
        if let Some(coordinator) = coordinator {
            coordinator.shutdown().await;
        }
    };
    stop_heartbeats.send_replace(true);
    let remove = tokio::time::timeout(REMOVE_TIMEOUT, async {
        // A heartbeat in flight would register the worker again.
        heartbeats.await;
        source.remove_worker(&registration.info).await
    });
    if tokio::time::timeout(FINAL_REPORT_TIMEOUT, async { tokio::join!(resign, remove) }).await.is_err() {
        tracing::debug!("worker registration was not removed in time; the leader removes it later");
    }
    drained
}

/// Registers the worker and sends heartbeats until `stop` is set. Applies the directive that each heartbeat returns.
async fn send_heartbeats(
    shared: &WorkerShared,
    source: &dyn JobSource,
    info: &WorkerInfo,
    mut stop: watch::Receiver<bool>,
) {
    let mut registered = false;
    while !*stop.borrow_and_update() {
        let pause = match catch_panic(send_heartbeat(shared, source, info, &mut registered)).await {
            Ok(Some(directive)) => {
                shared.apply_directive(directive);
                shared.options.heartbeat_interval
            }
            // The leader removed the registration after a long silence: register again.
            Ok(None) => HEARTBEAT_RETRY,
            Err(error) => {
                tracing::debug!(%error, "worker heartbeat failed");
                // The registration may be gone, which the HTTP API does not report. Registering again changes nothing.
                registered = false;
                HEARTBEAT_RETRY
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shared.heartbeat_now.notified() => {}
            _ = stop.changed() => {}
        }
    }
}

async fn send_heartbeat(
    shared: &WorkerShared,
    source: &dyn JobSource,
    info: &WorkerInfo,
    registered: &mut bool,
) -> Result<Option<Directive>> {
    if !*registered {
        source.register_worker(info).await?;
        *registered = true;
    }
    let draining = shared.slots.is_closed();
    let free = if draining { 0 } else { u32::try_from(shared.slots.free()).unwrap_or(u32::MAX) };
    let presence = Presence { free_slots: Some(free), draining, instance: info.instance.clone() };
    let directive = source.heartbeat_worker(&info.name, presence).await?;
    *registered = directive.is_some();
    Ok(directive)
}
