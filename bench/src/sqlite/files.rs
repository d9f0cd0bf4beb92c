//! Files of SQLite: one for each measurement, on a disk that keeps what it was given.
//!
//! What was written and committed is seen from outside, so that looking costs the measured connections nothing.

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

/// How long closed connections may take to be gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the index of the log, shared by all connections, counts commits: `iChange` in SQLite's file format.
const COMMITS_AT: u64 = 8;

/// A directory of its own, which is gone afterwards.
#[derive(Debug)]
pub(crate) struct Files {
    directory: PathBuf,
    made: AtomicU32,
}

impl Files {
    /// Beside this program, which was built on a disk.
    pub(crate) fn new() -> Result<Self> {
        let program = std::env::current_exe()?;
        let home = program.parent().context("this program is in no directory")?;
        ensure!(!is_in_memory(home)?, "{} is kept in memory, and nothing there is durable", home.display());
        let directory = home.join(format!("bench-{}", std::process::id()));
        fs::create_dir(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(Self { directory, made: AtomicU32::new(0) })
    }

    pub(crate) fn create(&self) -> Database {
        let name = format!("{}.db", self.made.fetch_add(1, Ordering::Relaxed));
        Database { url: format!("sqlite:{}", self.directory.join(&name).display()), name }
    }

    /// A process that ended without closing its connections leaves the log behind.
    pub(crate) fn drop(&self, database: &Database) {
        for suffix in ["", "-wal", "-shm"] {
            // Whatever is left is gone with the directory.
            let _ = fs::remove_file(self.path(database, suffix));
        }
    }

    /// Waits until every connection is gone. The last one carries the log over into the file, syncs it and removes the
    /// log; none of that may happen while the next measurement runs.
    pub(crate) async fn closed(&self, database: &Database) -> Result<()> {
        let begun = Instant::now();
        while self.path(database, "-wal").exists() {
            ensure!(begun.elapsed() < PATIENCE, "connections to {} are still open", database.name);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Carries the log over into the file, so that it begins anew for everybody.
    pub(crate) fn checkpoint(&self, database: &Database) -> Result<()> {
        let blocked: bool =
            connect(&database.url)?.query_row("PRAGMA wal_checkpoint(RESTART)", (), |row| row.get(0))?;
        ensure!(!blocked, "somebody reads {} and keeps its log from being emptied", database.name);
        Ok(())
    }

    /// How many transactions that wrote something were committed. Only while there is a connection.
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

/// Opens a bare connection that is as durable as those of our store, with the same cache.
pub(crate) fn connect(url: &str) -> Result<Connection> {
    let path = url.strip_prefix("sqlite:").context("not a file of SQLite")?;
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

/// How many bytes this process has written, wherever to: next to nothing but SQLite writes while it is measured.
pub(crate) fn written() -> Result<u64> {
    let io = fs::read_to_string("/proc/self/io").context("writes are counted in /proc, which only Linux has")?;
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
