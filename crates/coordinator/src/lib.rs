//! Leader election among the nodes of a database, and the leader's services.
//!
//! Every process with access to the database may run a [`Coordinator`]. The coordinators elect a leader through the
//! store, for a term by the store's clock. The leader runs the services: it promotes due jobs, fires schedules, reaps
//! expired leases, times out attempts, expires and unblocks jobs, advances bulk operations and prunes history. A
//! service that fails stops no other. A leader that is suspended, disconnected or slow does no harm, because every
//! write is fenced by its epoch.
//!
//! | module | what it owns |
//! |---|---|
//! | `leadership` | campaigning, and this node's view of its term |
//! | `membership` | node heartbeats |
//! | `service` | the loop that runs a service, and the sweep times that wake it |
//! | `services` | the services |
//! | `status` | the status for health checks and metrics |

mod jitter;
mod leadership;
mod membership;
mod options;

mod service;
mod services;
mod status;

use std::{sync::Arc, time::Duration};

use orchestrix_store::{Result, Store};
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use crate::{leadership::Campaign, service::ServiceContext, status::StatusRecorder};
pub use crate::{
    options::CoordinatorOptions,
    status::{CoordinatorStatus, ServiceStatus},
};

/// A running coordinator.
///
/// Call [`shutdown`](Coordinator::shutdown) to end it gracefully. Dropping it stops it at once; another node leads when
/// its term has expired.
#[derive(Debug)]
pub struct Coordinator {
    status: Arc<StatusRecorder>,
    stop: watch::Sender<bool>,
    running: Option<JoinHandle<()>>,
}

/// The time limit for the running steps of services at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

impl Coordinator {
    /// Starts a coordinator. It campaigns for leadership at once, unless the options forbid it, and retries through
    /// every failure of the store.
    pub fn start(store: Arc<dyn Store>, options: CoordinatorOptions) -> Result<Self> {
        options.validate()?;
        let status = Arc::new(StatusRecorder::default());
        let (stop, stopped) = watch::channel(false);
        let options = Arc::new(options);
        let running = match options.can_lead {
            true => tokio::spawn(run(store, options, Arc::clone(&status), stopped)),
            false => tokio::spawn(run_member(store, options, Arc::clone(&status), stopped)),
        };
        Ok(Self { status, stop, running: Some(running) })
    }

    /// The current status.
    pub fn status(&self) -> CoordinatorStatus {
        self.status.status()
    }

    /// Finishes the running steps, resigns and removes the node's registration. Another node leads within a second.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        if let Some(running) = self.running.take()
            && let Err(error) = running.await
        {
            tracing::error!(%error, "coordinator task panicked");
        }
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}

/// Sends heartbeats without campaigning.
async fn run_member(
    store: Arc<dyn Store>,
    options: Arc<CoordinatorOptions>,
    status: Arc<StatusRecorder>,
    mut stopped: watch::Receiver<bool>,
) {
    tokio::select! {
        () = membership::run(&*store, &options, &status) => {}
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    membership::leave(&*store, &options).await;
}

async fn run(
    store: Arc<dyn Store>,
    options: Arc<CoordinatorOptions>,
    status: Arc<StatusRecorder>,
    mut stopped: watch::Receiver<bool>,
) {
    let (term, current_term) = watch::channel(None);
    let (sweep_times, current_sweep_times) = watch::channel(None);
    let (deposed, deposed_epoch) = watch::channel(None);
    let context = ServiceContext {
        store: Arc::clone(&store),
        options: Arc::clone(&options),
        status: Arc::clone(&status),
        term: current_term,
        sweep_times: current_sweep_times,
        deposed,
    };
    // Dropping the set aborts its tasks, however this function ends.
    let mut tasks = JoinSet::new();
    tasks.spawn(service::watch_sweep_times(context.clone(), sweep_times));
    for service in services::all() {
        let context = context.clone();
        tasks.spawn(async move { service::run(&*service, context).await });
    }
    drop(context);
    let campaign = Campaign::new(&*store, &options, &status, &term, deposed_epoch);
    tokio::select! {
        () = campaign.run() => {}
        () = membership::run(&*store, &options, &status) => {}
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    campaign.resign().await;
    status.no_leader();
    drop(term);
    // The loops of services end when the sender of terms is gone.
    let ended = async { while tasks.join_next().await.is_some() {} };
    if timeout(SHUTDOWN_TIMEOUT, ended).await.is_err() {
        tracing::warn!("services did not finish their steps in time");
    }
    membership::leave(&*store, &options).await;
}
