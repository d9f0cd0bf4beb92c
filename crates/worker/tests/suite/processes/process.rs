//! A worker that is a process of its own, and does nothing but run the handlers of these tests.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use orchestrix_client::Client;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::Store;
use orchestrix_testkit::TestProcess;
use orchestrix_worker::{Drained, Worker, WorkerBuilder};
use tokio::signal::unix::{SignalKind, signal};

use super::{
    LIMIT, TERM,
    jobs::handlers,
    journal::{Journal, Run, Written},
    until,
};

const NAME: &str = "ORCHESTRIX_TEST_WORKER";
const STORE: &str = "ORCHESTRIX_TEST_WORKER_STORE";
const JOURNAL: &str = "ORCHESTRIX_TEST_WORKER_JOURNAL";
const THREADS: &str = "ORCHESTRIX_TEST_WORKER_THREADS";
const DRAIN_MS: &str = "ORCHESTRIX_TEST_WORKER_DRAIN_MS";
const PLAIN: &str = "ORCHESTRIX_TEST_WORKER_PLAIN";

/// How a worker's process is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    /// Threads of the runtime that handlers use.
    pub(crate) threads: usize,
    pub(crate) drain: Duration,
    /// Whether the worker itself waits for signals, as in most programs; then it does not write what it has done.
    pub(crate) plain: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self { threads: 2, drain: Duration::from_secs(2), plain: false }
    }
}

/// Not a test: the body of the processes.
#[test]
#[ignore = "runs only as the process that other tests start"]
fn a_worker() {
    let Ok(name) = env::var(NAME) else { return };
    TestProcess::exit_with_parent();
    let setting = |name| env::var(name).unwrap();
    let threads: usize = setting(THREADS).parse().unwrap();
    let mut runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.worker_threads(threads).enable_all().build().unwrap();
    let journal = Journal::open(Path::new(&setting(JOURNAL)));
    let drain = Duration::from_millis(setting(DRAIN_MS).parse().unwrap());
    runtime.block_on(async {
        let client = Client::shared(open(&setting(STORE)).await);
        let worker = handlers(Worker::builder(&client))
            .name(&name)
            .state(journal.clone())
            .heartbeat_interval(Duration::from_millis(300))
            .poll_interval(Duration::from_millis(300))
            // Longer than a shutdown waits.
            .cancel_grace(Duration::from_secs(3))
            .drain_timeout(drain)
            // Jobs of these tests lose many leases, and none of them is to die of it.
            .coordinator(|options| (options.term, options.crash_loop) = (TERM, u16::MAX));
        let drained = match setting(PLAIN) == "true" {
            true => worker.run().await.unwrap().expect("one signal only"),
            false => work(worker, &journal).await,
        };
        assert_eq!(drained.untold, 0, "the database is there: everything can be told");
    });
}

// Its own signal beside the worker's, since a worker that has ended can no longer be asked what it did.
async fn work(worker: WorkerBuilder, journal: &Journal) -> Drained {
    let mut asked_to_end = signal(SignalKind::terminate()).unwrap();
    let worker = worker.start().unwrap();
    let mut last = worker.stats();
    loop {
        let stats = worker.stats();
        if (stats.stale_rejected, stats.leases_lost) != (last.stale_rejected, last.leases_lost) {
            journal.stats(stats);
            last = stats;
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
            _ = asked_to_end.recv() => break,
        }
    }
    worker.shutdown().await
}

pub(crate) async fn open(url: &str) -> Arc<dyn Store> {
    if url.starts_with("sqlite:") {
        let options = SqliteOptions { busy_timeout: LIMIT, ..SqliteOptions::from_url(url).unwrap() };
        return Arc::new(SqliteStore::open(options).await.unwrap());
    }
    // Many processes share a server.
    Arc::new(PostgresStore::open(PostgresOptions { connections: 4, ..PostgresOptions::new(url) }).await.unwrap())
}

/// A worker's process, and where it writes. Killed with whoever holds it.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) name: String,
    twin: TestProcess,
    journal: PathBuf,
}

impl Process {
    pub(crate) fn start(name: &str, store: &str, journal: PathBuf, setup: Setup) -> Self {
        let (threads, drain) = (setup.threads.to_string(), setup.drain.as_millis().to_string());
        let settings = [
            (NAME, name),
            (STORE, store),
            (JOURNAL, journal.to_str().unwrap()),
            (THREADS, &threads),
            (DRAIN_MS, &drain),
            (PLAIN, if setup.plain { "true" } else { "false" }),
        ];
        let twin = TestProcess::start("processes::process::a_worker", settings).unwrap();
        Self { name: name.to_owned(), twin, journal }
    }

    pub(crate) fn written(&self) -> Written {
        Written::read(&self.journal)
    }

    /// Whether it is at work on a job of this kind.
    pub(crate) fn is_at(&self, kind: &str) -> bool {
        self.written().open().any(|run| run.kind == kind)
    }

    /// Waits until it works on `n` jobs at once.
    pub(crate) async fn at_work(&self, n: usize) -> Vec<Run> {
        let open = async || Some(self.written().open().cloned().collect::<Vec<_>>()).filter(|runs| runs.len() >= n);
        until(&format!("{} works on {n}", self.name), open).await
    }

    /// Waits until it has begun `n` runs in all.
    pub(crate) async fn has_begun(&self, n: usize) {
        until(&format!("{} begins {n}", self.name), async || (self.written().runs.len() >= n).then_some(())).await;
    }

    pub(crate) fn signal(&self, name: &str) {
        self.twin.signal(name).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.twin.kill().unwrap();
    }

    /// Waits until it has ended by itself; says what is wrong with how, if anything.
    pub(crate) async fn ended(&mut self) -> Option<String> {
        let status = until(&format!("{} ends", self.name), async || self.twin.try_wait().unwrap()).await;
        (!status.success()).then(|| format!("{} ended with {status}", self.name))
    }
}
