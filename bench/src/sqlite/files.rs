//! SQLite files: one per measurement, on a durable disk.
//!
//! Writes and commits are counted from outside, at no cost for the measured connections.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, OpenFlags};

use crate::measure::Database;

/// How long to wait for closed connections to disappear.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The offset of the commit counter in the shared WAL index: `iChange` in SQLite's file format.
const COMMITS_AT: u64 = 8;

/// A directory that is removed when dropped.
#[derive(Debug)]
pub(crate) struct Files {
    directory: PathBuf,
    made: AtomicU32,
}

impl Files {
    /// Creates it next to this program, which was built on a disk.
    pub(crate) fn new() -> Result<Self> {
        let program = std::env::current_exe()?;
        let home = program.parent().context("this program is in no directory")?;
        ensure!(!is_in_memory(home)?, "{} is a memory file system, which is not durable", home.display());
        let directory = home.join(format!("bench-{}", std::process::id()));
        fs::create_dir(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        Ok(Self { directory, made: AtomicU32::new(0) })
    }

    pub(crate) fn create(&self) -> Database {
        let name = format!("{}.db", self.made.fetch_add(1, Ordering::Relaxed));
        Database { url: format!("sqlite:{}", self.directory.join(&name).display()), name }
    }

    /// Also removes the WAL, which a process leaves behind that did not close its connections.
    pub(crate) fn drop(&self, database: &Database) {
        for suffix in ["", "-wal", "-shm"] {
            // Best effort: the directory is removed later.
            let _ = fs::remove_file(self.path(database, suffix));
        }
    }

    /// Waits until every connection is closed. The last one checkpoints, syncs and removes the WAL, which must not
    /// happen during the next measurement.
    pub(crate) async fn wait_until_closed(&self, database: &Database) -> Result<()> {
        let begun = Instant::now();
        while self.path(database, "-wal").exists() {
            ensure!(begun.elapsed() < TIMEOUT, "connections to {} are still open", database.name);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Checkpoints, so that the WAL starts from its beginning.
    pub(crate) fn checkpoint(&self, database: &Database) -> Result<()> {
        let blocked: bool =
            connect(&database.url)?.query_row("PRAGMA wal_checkpoint(RESTART)", (), |row| row.get(0))?;
        ensure!(!blocked, "a reader of {} blocks the checkpoint", database.name);
        Ok(())
    }

    /// The number of committed write transactions. Requires an open connection.
    pub(crate) fn commits(&self, database: &Database) -> Result<u32> {
        let mut counter = [0; 4];
        File::open(self.path(database, "-shm"))?.read_exact_at(&mut counter, COMMITS_AT)?;
        Ok(u32::from_ne_bytes(counter))
    }

    fn path(&self, database: &Database, suffix: &str) -> PathBuf {
        self.directory.join(format!("{}{suffix}", database.name))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            eprintln!("bench: cannot remove {}: {error}", self.directory.display());
        }
    }
}

/// Opens a plain connection with the durability and cache size of the store.
pub(crate) fn connect(url: &str) -> Result<Connection> {
    let path = url.strip_prefix("sqlite:").context("not an SQLite URL")?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA wal_autocheckpoint = 4000;
         PRAGMA journal_size_limit = 67108864;
         PRAGMA cache_size = -65536;
         PRAGMA temp_store = MEMORY;",
    )?;
    Ok(connection)
}

/// The number of bytes that this process has written, anywhere: during a measurement nearly all of them are SQLite's.
pub(crate) fn written() -> Result<u64> {
    let io = fs::read_to_string("/proc/self/io").context("writes are counted in /proc, which requires Linux")?;
    let bytes = io.lines().find_map(|line| line.strip_prefix("wchar:")).context("/proc/self/io has no wchar")?;
    Ok(bytes.trim().parse()?)
}

fn is_in_memory(directory: &Path) -> Result<bool> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let holding = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (point, kind) = (fields.next()?, fields.next()?);
        directory.starts_with(point).then_some((point.len(), kind))
    });
    Ok(holding.max().is_some_and(|(_, kind)| matches!(kind, "tmpfs" | "ramfs")))
}
