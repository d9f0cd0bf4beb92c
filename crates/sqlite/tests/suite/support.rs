//! Files and stores for tests.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use rusqlite::Connection;

/// How long anything may take to happen on a machine that is busy with other things.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// A store that waits long for others: a busy machine must not turn a wait into an error.
pub(crate) async fn open(file: &Path) -> SqliteStore {
    SqliteStore::open(options(file)).await.expect("a store")
}

/// What [`open`] opens with.
pub(crate) fn options(file: &Path) -> SqliteOptions {
    // Whose turn it is among many is chance, and on a slow disk every turn is long.
    SqliteOptions { busy_timeout: 2 * LIMIT, ..SqliteOptions::new(file) }
}

/// A plain connection beside the store's.
pub(crate) fn connect(file: &Path) -> Connection {
    let connection = Connection::open(file).expect("a connection");
    connection.busy_timeout(LIMIT).expect("a connection that waits");
    connection
}

/// A number, by SQL.
pub(crate) fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, (), |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// A connection that keeps every other writer out until it is released.
pub(crate) struct Holder(Connection);

impl Holder {
    pub(crate) fn new(file: &Path) -> Self {
        let connection = connect(file);
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(connection)
    }

    pub(crate) fn release(self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

/// Waits until a store's connections are gone, with which the log beside the file goes too.
pub(crate) async fn close(store: SqliteStore, file: &Path) {
    drop(store);
    until("the store is gone", || !fs::exists(crate::wal::path(file)).unwrap()).await;
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A folder of a test's own, gone with it.
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

    /// Where the store's file is, or will be.
    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("jobs.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
