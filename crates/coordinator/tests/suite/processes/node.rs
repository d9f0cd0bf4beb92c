//! A node process: this test binary, started again to run [`a_node`], which prints a line whenever its state changes.
//! It can be killed, suspended and terminated.

use std::{
    env,
    io::{BufRead, BufReader},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use orchestrix_coordinator::{Coordinator, CoordinatorOptions, CoordinatorStatus};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::Store;
use orchestrix_testkit::TestProcess;
use tokio::signal::unix::{SignalKind, signal};

use crate::support::{TIMEOUT, options, wait_for};

const NAME: &str = "ORCHESTRIX_TEST_NODE";
const STORE: &str = "ORCHESTRIX_TEST_NODE_STORE";
const TERM_MS: &str = "ORCHESTRIX_TEST_NODE_TERM_MS";
/// The prefix of lines for the test. Other lines are from the test harness.
const PREFIX: &str = "node: ";

/// Not a test: the body of the node processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs only as the process that other tests start"]
async fn a_node() {
    let (Ok(name), Ok(url), Ok(term)) = (env::var(NAME), env::var(STORE), env::var(TERM_MS)) else { return };
    TestProcess::exit_with_parent();
    let mut terminate = signal(SignalKind::terminate()).unwrap();
    let term = Duration::from_millis(term.parse().unwrap());
    // Jobs of these tests lose many leases, which must not make them dead.
    let options = CoordinatorOptions { term, crash_loop_limit: u16::MAX, ..options(&name) };
    let node = Coordinator::start(open(&url).await, options).unwrap();
    // The harness has printed an incomplete line.
    println!();
    let mut printed = None;
    loop {
        let state = NodeState::of(&node.status());
        if printed.as_ref() != Some(&state) {
            println!("{PREFIX}{}", state.line());
            printed = Some(state);
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
            _ = terminate.recv() => break,
        }
    }
    node.shutdown().await;
}

async fn open(url: &str) -> Arc<dyn Store> {
    if url.starts_with("sqlite:") {
        let options = SqliteOptions { busy_timeout: TIMEOUT, ..SqliteOptions::from_url(url).unwrap() };
        return Arc::new(SqliteStore::open(options).await.unwrap());
    }
    Arc::new(PostgresStore::open(PostgresOptions::new(url)).await.unwrap())
}

/// The state that a node printed last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NodeState {
    pub(crate) leading: bool,
    /// The latest epoch that the node knows.
    pub(crate) epoch: i64,
    /// How many of its steps were fenced because another node led.
    pub(crate) refused: u64,
}

impl NodeState {
    fn of(status: &CoordinatorStatus) -> Self {
        Self {
            leading: status.leading,
            epoch: status.epoch.map_or(0, |epoch| epoch.0),
            refused: status.services.values().map(|service| service.fenced).sum(),
        }
    }

    fn line(self) -> String {
        format!("{} {} {}", if self.leading { "leads" } else { "follows" }, self.epoch, self.refused)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.trim_end().strip_prefix(PREFIX)?.split(' ');
        let leading = words.next()? == "leads";
        Some(Self { leading, epoch: words.next()?.parse().ok()?, refused: words.next()?.parse().ok()? })
    }
}

/// A node process. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    process: TestProcess,
    state: Arc<Mutex<NodeState>>,
}

impl Node {
    /// Starts a node process.
    pub(crate) fn start(name: &str, store: &str, term: Duration) -> Self {
        let settings = [(NAME, name), (STORE, store), (TERM_MS, &term.as_millis().to_string())];
        let mut process = TestProcess::start("processes::node::a_node", settings).unwrap();
        let mut output = BufReader::new(process.output().unwrap());
        let state = Arc::new(Mutex::new(NodeState::default()));
        let latest = Arc::clone(&state);
        thread::spawn(move || {
            let mut line = String::new();
            while output.read_line(&mut line).is_ok_and(|read| read > 0) {
                if let Some(state) = NodeState::parse(&line) {
                    *latest.lock().unwrap() = state;
                }
                line.clear();
            }
        });
        Self { name: name.to_owned(), process, state }
    }

    pub(crate) fn state(&self) -> NodeState {
        *self.state.lock().unwrap()
    }

    /// Sends a signal such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        self.process.signal(name).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
    }

    /// Waits until the process has exited successfully.
    pub(crate) async fn wait_for_exit(&mut self) {
        let status = wait_for("the node exits", async || self.process.try_wait().unwrap()).await;
        assert!(status.success(), "{} exited with {status}", self.name);
    }

    /// Waits until the node's state satisfies `predicate`.
    pub(crate) async fn wait_for(&self, what: &str, predicate: impl Fn(NodeState) -> bool) -> NodeState {
        wait_for(&format!("{}: {what}", self.name), async || Some(self.state()).filter(|now| predicate(*now))).await
    }
}
