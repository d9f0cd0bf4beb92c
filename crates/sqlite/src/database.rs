//! The connections of one process: a thread that writes, and a pool that reads.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use orchestrix_store::{Result, StoreError, wakeup::WakeupSender};
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    task::spawn_blocking,
};

use crate::{
    error::{self, Error, is_busy},
    migrate,
    options::SqliteOptions,
    row::micros,
    session::{Session, Transaction},
    statement,
    writer::{MAX_QUEUE, WriteRequest, WriteTask, Writer},
};

/// The connections of this process.
#[derive(Debug)]
pub(crate) struct Database {
    // Fields drop in this order. Only a connection that may write can checkpoint the log into the file when the last
    // connection closes, so the writer must close after the readers.
    readers: Arc<ReaderPool>,
    writer: Mutex<Option<mpsc::Sender<Box<dyn WriteTask>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct ReaderPool {
    options: SqliteOptions,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl std::fmt::Debug for dyn WriteTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WriteTask")
    }
}

impl Database {
    /// Opens the file, creates or migrates it, and starts the writer thread.
    pub(crate) async fn open(options: SqliteOptions, wakeups: WakeupSender) -> Result<Self> {
        let options = options.clamped();
        let own = options.clone();
        let connection = blocking(move || open_writer(&own).map_err(|error| error.into_store_error(&own.path))).await?;
        let (sender, inbox) = mpsc::channel(MAX_QUEUE);
        let writer = Writer::new(connection, options.clone(), wakeups);
        let thread = thread::Builder::new()
            .name("orchestrix-sqlite".into())
            .spawn(move || writer.run(inbox))
            .map_err(|error| StoreError::Unavailable(format!("the writer thread could not be started: {error}")))?;
        let permits = Arc::new(Semaphore::new(options.readers));
        Ok(Self {
            readers: Arc::new(ReaderPool { options, idle: Mutex::default(), permits }),
            writer: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Waits for running calls and closes every connection, the writer last, so that all data is in one file.
    pub(crate) async fn close(&self) {
        let all = u32::try_from(self.readers.options.readers).unwrap_or(u32::MAX);
        // This fails only if another clone has closed the store already.
        if let Ok(permits) = self.readers.permits.acquire_many(all).await {
            permits.forget();
            self.readers.permits.close();
        }
        lock(&self.readers.idle).clear();
        lock(&self.writer).take();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && spawn_blocking(move || thread.join()).await.is_ok_and(|ended| ended.is_err())
        {
            tracing::error!(path = %self.readers.options.path.display(), "the writer thread panicked");
        }
    }

    /// Runs `work` on the writer thread and returns its result after the commit.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> error::Result<T> + Send + 'static,
    ) -> Result<T> {
        let stopped = || StoreError::Backend("the writer thread of this store has stopped".into());
        let writer = lock(&self.writer).clone().ok_or_else(closed)?;
        let (reply, result) = oneshot::channel();
        writer.send(Box::new(WriteRequest::new(work, reply))).await.map_err(|_| stopped())?;
        drop(writer);
        let result = result.await.map_err(|_| stopped())?;
        result.map_err(|error| error.into_store_error(&self.readers.options.path))
    }

    /// Runs `work` on a snapshot of committed data.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(Session<'_>) -> error::Result<T> + Send + 'static,
    ) -> Result<T> {
        let readers = Arc::clone(&self.readers);
        let permit = Arc::clone(&readers.permits).acquire_owned().await.map_err(|_| closed())?;
        blocking(move || {
            // Held until the read ends, even if the caller has stopped waiting for it.
            let _permit = permit;
            readers.read(work).map_err(|error| error.into_store_error(&readers.options.path))
        })
        .await
    }
}

impl ReaderPool {
    fn read<T>(&self, work: impl FnOnce(Session<'_>) -> error::Result<T>) -> error::Result<T> {
        let idle = lock(&self.idle).pop();
        let connection = idle.map_or_else(|| open_reader(&self.options), Ok)?;
        connection.execute_batch("BEGIN")?;
        let result = work(Session::new(&connection, self.options.clock.now(), &self.options));
        // Some errors end the transaction themselves. Then the commit fails and the connection is not used again.
        let committed = connection.execute_batch("COMMIT");
        if committed.is_ok() {
            lock(&self.idle).push(connection);
        }
        let result = result?;
        committed?;
        Ok(result)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(StoreError::Backend(error.to_string().into())))
}

fn open_writer(options: &SqliteOptions) -> error::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connect(options, flags)?;
    // SQLite silently opens an unwritable file for reading, and would report it only at the first write.
    if connection.is_readonly(rusqlite::MAIN_DB)? {
        let text = format!("{}: read-only: the file and its directory must be writable", options.path.display());
        return Err(StoreError::Backend(text.into()).into());
    }
    // In one snapshot, because another process may be creating the tables right now.
    connection.execute_batch("BEGIN")?;
    migrate::check(&connection, &options.path)?;
    connection.execute_batch("COMMIT")?;
    enable_wal(&connection, &options.path, options.busy_timeout)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         -- Without these, macOS leaves synced data in the drive's cache.
         PRAGMA fullfsync = 1;
         PRAGMA checkpoint_fullfsync = 1;
         PRAGMA wal_autocheckpoint = 4000;
         PRAGMA journal_size_limit = 67108864;",
    )?;
    migrate::migrate(&connection, &options.path, micros(options.clock.now()))?;
    // From here on the writer itself retries when the file is locked.
    connection.busy_timeout(Duration::ZERO)?;
    Ok(connection)
}

fn open_reader(options: &SqliteOptions) -> error::Result<Connection> {
    connect(options, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

fn connect(options: &SqliteOptions, flags: OpenFlags) -> error::Result<Connection> {
    let connection = Connection::open_with_flags(&options.path, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(statement::ALL.len() + 8);
    // One query plan per statement, whatever its parameters. The file has no statistics that could justify another.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.execute_batch("PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;")?;
    Ok(connection)
}

// Changing the journal mode needs the whole file, and SQLite's busy timeout does not cover that.
fn enable_wal(connection: &Connection, path: &Path, timeout: Duration) -> error::Result<()> {
    let begun = Instant::now();
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", (), |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                let text = format!(
                    "{}: this file system does not support write-ahead logging (mode {mode}): choose another path",
                    path.display()
                );
                return Err(StoreError::Backend(text.into()).into());
            }
            Err(error) if is_busy(&error) && begun.elapsed() < timeout => thread::sleep(Duration::from_millis(10)),
            Err(error) => return Err(Error::Sqlite(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use super::*;

    // Without this check, only a power loss would reveal a wrong setting.
    #[test]
    fn every_commit_waits_for_the_disk() {
        let folder = env::temp_dir().join(format!("orchestrix-sqlite-database-{}", process::id()));
        fs::create_dir(&folder).unwrap();
        let connection = open_writer(&SqliteOptions::new(folder.join("jobs.db"))).unwrap();
        let mode: String = connection.query_row("PRAGMA journal_mode", (), |row| row.get(0)).unwrap();
        let synchronous: i64 = connection.query_row("PRAGMA synchronous", (), |row| row.get(0)).unwrap();
        drop(connection);
        fs::remove_dir_all(folder).unwrap();
        assert_eq!((mode.as_str(), synchronous), ("wal", 2));
    }
}
