//! Detects leaked sessions, transactions, permits and descriptors of a server.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdout, Command, Stdio},
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::runtime::Runtime;
use tokio_postgres::NoTls;

use super::process::{ServerProcess, TIMEOUT};
use crate::harness::TestEnv;

/// How soon a server must have cleaned up: sooner than the database's idle timeouts would do it.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(20);

const SESSIONS: &str = "FROM pg_stat_activity \
    WHERE datname = current_database() AND application_name = 'orchestrix'";

/// The resource use of an idle server on PostgreSQL, to compare with later.
pub(crate) struct LeakCheck<'a> {
    server: &'a ServerProcess,
    runtime: Runtime,
    database: tokio_postgres::Client,
    /// Descriptors other than database connections, which are opened on demand.
    baseline: usize,
}

impl<'a> LeakCheck<'a> {
    /// Records the resource use of a server that has served no request.
    pub(crate) fn baseline(server: &'a ServerProcess, env: &TestEnv) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (database, connection) = runtime.block_on(tokio_postgres::connect(env.url(), NoTls)).unwrap();
        runtime.spawn(connection);
        let leaks = Self { server, runtime, database, baseline: 0 };
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let (before, open, after) = (leaks.sessions(), server.open_descriptors(), leaks.sessions());
            // A connection may be opened between the two counts.
            if before == after {
                return Self { baseline: open - before, ..leaks };
            }
            assert!(Instant::now() < deadline, "the server never settles");
        }
    }

    /// Counts the server's connections to the database.
    pub(crate) fn sessions(&self) -> usize {
        self.count(&format!("SELECT count(*) {SESSIONS}"))
    }

    /// The backend pids of sessions that wait for a lock.
    pub(crate) fn blocked_sessions(&self) -> Vec<i64> {
        self.numbers(&format!("SELECT pid::bigint {SESSIONS} AND wait_event_type = 'Lock'"))
    }

    /// Counts sessions that are idle in a transaction.
    pub(crate) fn open_transactions(&self) -> usize {
        self.count(&format!("SELECT count(*) {SESSIONS} AND state LIKE 'idle in transaction%'"))
    }

    /// The number that `sql` returns.
    pub(crate) fn count(&self, sql: &str) -> usize {
        self.numbers(sql)[0].try_into().unwrap()
    }

    fn numbers(&self, sql: &str) -> Vec<i64> {
        let rows = self.runtime.block_on(self.database.query(sql, &[])).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Polls until the condition holds.
    pub(crate) fn wait_until(&self, what: &str, mut seen: impl FnMut() -> bool) {
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        while !seen() {
            assert!(
                Instant::now() < deadline,
                "timed out waiting until {what}: {} sessions, {} blocked, {} idle in transaction, {} descriptors; baseline {} \
                 descriptors without sessions",
                self.sessions(),
                self.blocked_sessions().len(),
                self.open_transactions(),
                self.server.open_descriptors(),
                self.baseline,
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asserts that nothing is left over, and that a burst of requests is accepted: after leaks of permits,
    /// connections or descriptors it would not be.
    pub(crate) fn assert_back_to_baseline(&self) {
        let mut left = 300;
        // A slow machine rejects some of them with 429.
        self.wait_until("a burst of requests is accepted", || {
            left = enqueue_concurrently(self.server, left).into_iter().filter(|status| *status != 202).count();
            left == 0
        });
        self.wait_until("no transaction stays open", || self.open_transactions() == 0);
        self.wait_until("no session is left", || self.sessions() <= MAX_SESSIONS);
        self.wait_until("no descriptor is left", || self.server.open_descriptors() <= self.baseline + self.sessions());
    }
}

/// The server's connection pool and its listener connection.
pub(crate) const MAX_SESSIONS: usize = 11;

/// Enqueues `count` jobs at the same time; returns the statuses.
pub(crate) fn enqueue_concurrently(server: &ServerProcess, count: usize) -> Vec<u16> {
    let all = Barrier::new(count);
    thread::scope(|scope| {
        let send = || {
            all.wait();
            server.post("/jobs", &json!({"jobType": "at-once", "queue": "idle"})).status
        };
        let clients: Vec<_> = (0..count).map(|_| scope.spawn(send)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    })
}

/// A psql session in a transaction, rolled back when dropped.
pub(crate) struct SqlTransaction {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl SqlTransaction {
    pub(crate) fn begin(env: &TestEnv) -> Self {
        let program = orchestrix_testkit::PostgresInstallation::find().unwrap().program("psql");
        let mut child = Command::new(program)
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", env.url()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut transaction = Self { child, lines };
        assert_eq!(transaction.query("BEGIN; SELECT 'begun';"), "begun");
        transaction
    }

    /// The first line that these statements print.
    pub(crate) fn query(&mut self, sql: &str) -> String {
        writeln!(self.child.stdin.as_mut().unwrap(), "{sql}").unwrap();
        self.lines.next().expect("an answer").unwrap()
    }
}

impl Drop for SqlTransaction {
    fn drop(&mut self) {
        // PostgreSQL notices the closed connection, and rolls back.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An exclusive lock on a table, released when dropped.
pub(crate) struct TableLock(#[expect(dead_code, reason = "releases the lock when dropped")] SqlTransaction);

impl TableLock {
    pub(crate) fn acquire(env: &TestEnv, name: &str) -> Self {
        let mut transaction = SqlTransaction::begin(env);
        let sql = format!("LOCK TABLE orchestrix.{name} IN ACCESS EXCLUSIVE MODE; SELECT 'held';");
        assert_eq!(transaction.query(&sql), "held");
        Self(transaction)
    }
}
