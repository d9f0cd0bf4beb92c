//! A node that is a process of its own: this test binary, started anew to run [`a_node`], which writes a line whenever
//! its standing changes. It can be killed, stopped and asked to end like any other.

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

use crate::support::{LIMIT, options, until};

const NAME: &str = "ORCHESTRIX_TEST_NODE";
const STORE: &str = "ORCHESTRIX_TEST_NODE_STORE";
const TERM_MS: &str = "ORCHESTRIX_TEST_NODE_TERM_MS";
/// Begins every line that is meant for the test; the others are the test harness's own.
const SAID: &str = "node: ";

/// Not a test: the body of the processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs only as the process that other tests start"]
async fn a_node() {
    let (Ok(name), Ok(url), Ok(term)) = (env::var(NAME), env::var(STORE), env::var(TERM_MS)) else { return };
    TestProcess::exit_with_parent();
    let mut asked_to_end = signal(SignalKind::terminate()).unwrap();
    let term = Duration::from_millis(term.parse().unwrap());
    // Jobs of these tests lose many leases, and none of them is to die of it.
    let options = CoordinatorOptions { term, crash_loop: u16::MAX, ..options(&name) };
    let node = Coordinator::start(open(&url).await, options).unwrap();
    // The harness has begun a line of its own.
    println!();
    let mut said = None;
    loop {
        let standing = Standing::of(&node.status());
        if said.as_ref() != Some(&standing) {
            println!("{SAID}{}", standing.line());
            said = Some(standing);
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
            _ = asked_to_end.recv() => break,
        }
    }
    node.shutdown().await;
}

async fn open(url: &str) -> Arc<dyn Store> {
    if url.starts_with("sqlite:") {
        let options = SqliteOptions { busy_timeout: LIMIT, ..SqliteOptions::from_url(url).unwrap() };
        return Arc::new(SqliteStore::open(options).await.unwrap());
    }
    Arc::new(PostgresStore::open(PostgresOptions::new(url)).await.unwrap())
}

/// What a node last said of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) leading: bool,
    /// The latest epoch that it knows of.
    pub(crate) epoch: i64,
    /// How many of its steps were refused because another led.
    pub(crate) refused: u64,
}

impl Standing {
    fn of(status: &CoordinatorStatus) -> Self {
        Self {
            leading: status.leading,
            epoch: status.epoch.map_or(0, |epoch| epoch.0),
            refused: status.services.values().map(|service| service.refused).sum(),
        }
    }

    fn line(self) -> String {
        format!("{} {} {}", if self.leading { "leads" } else { "follows" }, self.epoch, self.refused)
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.trim_end().strip_prefix(SAID)?.split(' ');
        let leading = words.next()? == "leads";
        Some(Self { leading, epoch: words.next()?.parse().ok()?, refused: words.next()?.parse().ok()? })
    }
}

/// A node's process. Killed with whoever holds it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    twin: TestProcess,
    standing: Arc<Mutex<Standing>>,
}

impl Node {
    /// Starts a node of this name on a store.
    pub(crate) fn start(name: &str, store: &str, term: Duration) -> Self {
        let settings = [(NAME, name), (STORE, store), (TERM_MS, &term.as_millis().to_string())];
        let mut twin = TestProcess::start("processes::node::a_node", settings).unwrap();
        let mut output = BufReader::new(twin.output().unwrap());
        let standing = Arc::new(Mutex::new(Standing::default()));
        let latest = Arc::clone(&standing);
        thread::spawn(move || {
            let mut line = String::new();
            while output.read_line(&mut line).is_ok_and(|read| read > 0) {
                if let Some(said) = Standing::parse(&line) {
                    *latest.lock().unwrap() = said;
                }
                line.clear();
            }
        });
        Self { name: name.to_owned(), twin, standing }
    }

    pub(crate) fn standing(&self) -> Standing {
        *self.standing.lock().unwrap()
    }

    /// Sends a signal such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        self.twin.signal(name).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.twin.kill().unwrap();
    }

    /// Waits until it has ended by itself, and well.
    pub(crate) async fn ended(&mut self) {
        let status = until("the node ends", async || self.twin.try_wait().unwrap()).await;
        assert!(status.success(), "{} ended with {status}", self.name);
    }

    /// Waits until what it says of itself is so.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(Standing) -> bool) -> Standing {
        until(&format!("{}: {what}", self.name), async || Some(self.standing()).filter(|now| is_so(*now))).await
    }
}
