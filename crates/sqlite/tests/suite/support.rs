//! Files, stores and connections for tests.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use rusqlite::Connection;

/// How long a test waits for anything on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// A store with a long lock timeout: a busy machine must not turn a wait into an error.
pub(crate) async fn open(file: &Path) -> SqliteStore {
    SqliteStore::open(options(file)).await.expect("a store")
}

/// The options of [`open`].
pub(crate) fn options(file: &Path) -> SqliteOptions {
    // Which process gets the lock next is random, and on a slow disk each holds it for long.
    SqliteOptions { busy_timeout: 2 * TIMEOUT, ..SqliteOptions::new(file) }
}

/// A plain connection, independent of the store.
pub(crate) fn connect(file: &Path) -> Connection {
    let connection = Connection::open(file).expect("a connection");
    connection.busy_timeout(TIMEOUT).expect("a busy timeout");
    connection
}

/// The number that a query returns.
pub(crate) fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, (), |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Holds the write lock of a file until it is released.
pub(crate) struct WriteLock(Connection);

impl WriteLock {
    pub(crate) fn new(file: &Path) -> Self {
        let connection = connect(file);
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(connection)
    }

    pub(crate) fn release(self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

/// Drops a store and waits until its connections are closed. Closing the last one removes the write-ahead log.
pub(crate) async fn close(store: SqliteStore, file: &Path) {
    drop(store);
    wait_until("the store is closed", || !fs::exists(crate::wal::path(file)).unwrap()).await;
}

/// Waits until `condition` holds.
pub(crate) async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < TIMEOUT, "timed out after {TIMEOUT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A temporary folder of one test, removed when it is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("orchestrix-sqlite-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = env::temp_dir().join(name);
        fs::create_dir(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The path of the store's file.
    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("jobs.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the folder stays among the temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
