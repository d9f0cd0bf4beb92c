//! One leader among all nodes of a database, and the work that must be done exactly once or at least always.
//!
//! Every process that has the database may run a [`Coordinator`], be it only to be listed. They agree through the store
//! alone on who leads, for a term by the store's clock. The leader promotes due jobs, takes back expired leases, ends
//! attempts that run over, expires, unblocks, forgets and prunes; each is a small service of its own, and one that fails
//! stops no other. A leader that is stopped, cut off or slow can do no harm: all it writes is fenced by its epoch.
//!
//! | module | what it owns |
//! |---|---|
//! | `leadership` | the candidacy, the term on this node's own clock |
//! | `membership` | showing that this node lives |
//! | `service` | the loop around every piece of leader's work, and the agenda that wakes it |
//! | `services` | the pieces |
//! | `status` | what health checks and metrics read |

mod leadership;
mod membership;
mod options;
mod pace;
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

use crate::{leadership::Candidate, service::Context, status::Board};
pub use crate::{
    options::CoordinatorOptions,
    status::{CoordinatorStatus, ServiceStatus},
};

/// This node's part in the coordination. Dropped without [`shutdown`](Coordinator::shutdown) it stops at once, and
/// others notice at the end of its term.
#[derive(Debug)]
pub struct Coordinator {
    board: Arc<Board>,
    stop: watch::Sender<bool>,
    running: Option<JoinHandle<()>>,
}

/// How long services get to end the step they are in.
const LAST_STEPS: Duration = Duration::from_secs(5);

impl Coordinator {
    /// Begins to take part. Stands for leadership at once, if it is to, and goes on through every failure of the store.
    pub fn start(store: Arc<dyn Store>, options: CoordinatorOptions) -> Result<Self> {
        options.validate()?;
        let board = Arc::new(Board::default());
        let (stop, stopped) = watch::channel(false);
        let options = Arc::new(options);
        let running = match options.stands {
            true => tokio::spawn(run(store, options, Arc::clone(&board), stopped)),
            false => tokio::spawn(belong(store, options, Arc::clone(&board), stopped)),
        };
        Ok(Self { board, stop, running: Some(running) })
    }

    /// How this node stands now.
    pub fn status(&self) -> CoordinatorStatus {
        self.board.status()
    }

    /// Ends the steps under way, resigns and leaves. Others lead within a second.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        if let Some(running) = self.running.take()
            && let Err(error) = running.await
        {
            tracing::error!(%error, "the coordinator did not end well");
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

// Shows that this node is there, and never asks to lead.
async fn belong(
    store: Arc<dyn Store>,
    options: Arc<CoordinatorOptions>,
    board: Arc<Board>,
    mut stopped: watch::Receiver<bool>,
) {
    tokio::select! {
        () = membership::run(&*store, &options, &board) => {}
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    membership::leave(&*store, &options).await;
}

async fn run(
    store: Arc<dyn Store>,
    options: Arc<CoordinatorOptions>,
    board: Arc<Board>,
    mut stopped: watch::Receiver<bool>,
) {
    let (reign, reigns) = watch::channel(None);
    let (agenda, agendas) = watch::channel(None);
    let (deposed, refused) = watch::channel(None);
    let context = Context {
        store: Arc::clone(&store),
        options: Arc::clone(&options),
        board: Arc::clone(&board),
        reign: reigns,
        agenda: agendas,
        deposed,
    };
    // Ends with this function, however it ends.
    let mut tasks = JoinSet::new();
    tasks.spawn(service::read_agenda(context.clone(), agenda));
    for service in services::all() {
        let context = context.clone();
        tasks.spawn(async move { service::run(&*service, context).await });
    }
    drop(context);
    let candidate = Candidate::new(&*store, &options, &board, &reign, refused);
    tokio::select! {
        () = candidate.run() => {}
        () = membership::run(&*store, &options, &board) => {}
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    candidate.resign().await;
    board.unled();
    drop(reign);
    // Services end when there is no reign to wait for any more.
    let ended = async { while tasks.join_next().await.is_some() {} };
    if timeout(LAST_STEPS, ended).await.is_err() {
        tracing::warn!("some steps did not end in time; the store decides what became of them");
    }
    membership::leave(&*store, &options).await;
}
