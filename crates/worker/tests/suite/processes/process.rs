//! A worker process that runs the handlers of these tests.

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
    TERM, TIMEOUT,
    jobs::handlers,
    journal::{Journal, JournalContents, Run},
    wait_for,
};

const NAME: &str = "ORCHESTRIX_TEST_WORKER";
const STORE: &str = "ORCHESTRIX_TEST_WORKER_STORE";
const JOURNAL: &str = "ORCHESTRIX_TEST_WORKER_JOURNAL";
const THREADS: &str = "ORCHESTRIX_TEST_WORKER_THREADS";
const DRAIN_MS: &str = "ORCHESTRIX_TEST_WORKER_DRAIN_MS";
const PLAIN: &str = "ORCHESTRIX_TEST_WORKER_PLAIN";

/// The settings of a worker process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    /// The number of threads of the handlers' runtime.
    pub(crate) threads: usize,
    pub(crate) drain: Duration,
    /// Whether the process uses `WorkerBuilder::run`, as most programs do. It then writes no stats to its journal.
    pub(crate) plain: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self { threads: 2, drain: Duration::from_secs(2), plain: false }
    }
}

/// Not a test: the body of the worker processes.
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
            // Longer than the drain timeout.
            .cancel_grace(Duration::from_secs(3))
            .drain_timeout(drain)
            // Jobs of these tests lose many leases, which must not make them dead.
            .coordinator(|options| (options.term, options.crash_loop_limit) = (TERM, u16::MAX));
        let drained = match setting(PLAIN) == "true" {
            true => worker.run().await.unwrap().expect("the process got only one signal"),
            false => run_with_stats(worker, &journal).await,
        };
        assert_eq!(drained.unreported, 0, "the database is available, so every outcome can be reported");
    });
}

/// Runs the worker until SIGTERM and writes its stats whenever they change.
async fn run_with_stats(worker: WorkerBuilder, journal: &Journal) -> Drained {
    let mut terminate = signal(SignalKind::terminate()).unwrap();
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
            _ = terminate.recv() => break,
        }
    }
    worker.shutdown().await
}

pub(crate) async fn open(url: &str) -> Arc<dyn Store> {
    if url.starts_with("sqlite:") {
        let options = SqliteOptions { busy_timeout: TIMEOUT, ..SqliteOptions::from_url(url).unwrap() };
        return Arc::new(SqliteStore::open(options).await.unwrap());
    }
    // Many processes share one server.
    Arc::new(PostgresStore::open(PostgresOptions { connections: 4, ..PostgresOptions::new(url) }).await.unwrap())
}

/// A worker process and its journal. The process is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) name: String,
    process: TestProcess,
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
        let process = TestProcess::start("processes::process::a_worker", settings).unwrap();
        Self { name: name.to_owned(), process, journal }
    }

    pub(crate) fn journal_contents(&self) -> JournalContents {
        JournalContents::read(&self.journal)
    }

    /// Whether it runs a job of this type.
    pub(crate) fn is_running(&self, kind: &str) -> bool {
        self.journal_contents().running().any(|run| run.kind == kind)
    }

    /// Waits until it runs `n` jobs concurrently.
    pub(crate) async fn wait_until_running(&self, n: usize) -> Vec<Run> {
        let running = async || {
            Some(self.journal_contents().running().cloned().collect::<Vec<_>>()).filter(|runs| runs.len() >= n)
        };
        wait_for(&format!("{} runs {n} jobs", self.name), running).await
    }

    /// Waits until it has started `n` runs in total.
    pub(crate) async fn wait_until_started(&self, n: usize) {
        wait_for(&format!("{} starts {n} runs", self.name), async || {
            (self.journal_contents().runs.len() >= n).then_some(())
        })
        .await;
    }

    pub(crate) fn signal(&self, name: &str) {
        self.process.signal(name).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
    }

    /// Waits until the process has exited. Returns a violation if it failed.
    pub(crate) async fn wait_for_exit(&mut self) -> Option<String> {
        let status = wait_for(&format!("{} exits", self.name), async || self.process.try_wait().unwrap()).await;
        (!status.success()).then(|| format!("{} exited with {status}", self.name))
    }
}
