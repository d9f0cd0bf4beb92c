//! The file: one thread that writes, a few connections that read, and how they are opened.

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
    error::{self, Fault, is_busy},
    migrate,
    options::SqliteOptions,
    row::micros,
    session::{Session, Transaction},
    statement,
    writer::{Call, MAX_QUEUE, Operation, Writer},
};

/// The connections of this process.
#[derive(Debug)]
pub(crate) struct Database {
    // Dropped in this order: only a connection that may write can fold the log into the file when it closes as the last.
    readers: Arc<Readers>,
    writer: Mutex<Option<mpsc::Sender<Box<dyn Operation>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Readers {
    options: SqliteOptions,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl std::fmt::Debug for dyn Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Operation")
    }
}

impl Database {
    /// Opens the file, makes or migrates it, and starts the writer.
    pub(crate) async fn open(options: SqliteOptions, wakeups: WakeupSender) -> Result<Self> {
        let options = options.within_reason();
        let own = options.clone();
        let connection = blocking(move || open_writer(&own).map_err(|fault| fault.at(&own.path))).await?;
        let (writer, inbox) = mpsc::channel(MAX_QUEUE);
        let work = Writer::new(connection, options.clone(), wakeups);
        let thread = thread::Builder::new()
            .name("orchestrix-sqlite".into())
            .spawn(move || work.run(inbox))
            .map_err(|error| StoreError::Unavailable(format!("no thread to write with: {error}")))?;
        let permits = Arc::new(Semaphore::new(options.readers));
        Ok(Self {
            readers: Arc::new(Readers { options, idle: Mutex::default(), permits }),
            writer: Mutex::new(Some(writer)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Ends what is under way and closes every connection, the writing one last, so that all is in one file.
    pub(crate) async fn close(&self) {
        let all = u32::try_from(self.readers.options.readers).unwrap_or(u32::MAX);
        // Refused only if somebody else has closed it.
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
            tracing::error!("the writer of an SQLite file panicked");
        }
    }

    /// Runs `work` in a transaction, alone or with others; answers after the commit.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> error::Result<T> + Send + 'static,
    ) -> Result<T> {
        let gone = || StoreError::Backend("the writer of this store has stopped".into());
        let writer = lock(&self.writer).clone().ok_or_else(closed)?;
        let (reply, answer) = oneshot::channel();
        writer.send(Box::new(Call::new(work, reply))).await.map_err(|_| gone())?;
        drop(writer);
        let answer = answer.await.map_err(|_| gone())?;
        answer.map_err(|fault| fault.at(&self.readers.options.path))
    }

    /// Runs `work` on what is committed at one moment.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(Session<'_>) -> error::Result<T> + Send + 'static,
    ) -> Result<T> {
        let readers = Arc::clone(&self.readers);
        let permit = Arc::clone(&readers.permits).acquire_owned().await.map_err(|_| closed())?;
        blocking(move || {
            // Held for as long as the read takes, whether or not somebody still waits for it.
            let _permit = permit;
            readers.read(work).map_err(|fault| fault.at(&readers.options.path))
        })
        .await
    }
}

impl Readers {
    fn read<T>(&self, work: impl FnOnce(Session<'_>) -> error::Result<T>) -> error::Result<T> {
        let idle = lock(&self.idle).pop();
        let connection = idle.map_or_else(|| open_reader(&self.options), Ok)?;
        connection.execute_batch("BEGIN")?;
        let answer = work(Session::new(&connection, self.options.clock.now(), &self.options));
        // Some errors have ended the transaction already; then, or if it cannot be ended, the connection is not used again.
        let ended = connection.execute_batch("COMMIT");
        if ended.is_ok() {
            lock(&self.idle).push(connection);
        }
        let answer = answer?;
        ended?;
        Ok(answer)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store has been closed".into())
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(StoreError::Backend(error.to_string().into())))
}

fn open_writer(options: &SqliteOptions) -> error::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = connect(options, flags)?;
    // SQLite opens what it may not write for reading, and would say so only at the first write.
    if connection.is_readonly(rusqlite::MAIN_DB)? {
        let text = format!("{}: read-only: the file and its directory must be writable", options.path.display());
        return Err(StoreError::Backend(text.into()).into());
    }
    // At one moment: another process may be making the tables right now.
    connection.execute_batch("BEGIN")?;
    migrate::check(&connection, &options.path)?;
    connection.execute_batch("COMMIT")?;
    use_wal(&connection, &options.path, options.busy_timeout)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         -- Without these macOS leaves what was synced in the drive's cache.
         PRAGMA fullfsync = 1;
         PRAGMA checkpoint_fullfsync = 1;
         PRAGMA wal_autocheckpoint = 4000;
         PRAGMA journal_size_limit = 67108864;",
    )?;
    migrate::migrate(&connection, &options.path, micros(options.clock.now()))?;
    // From here on the writer waits in its own way.
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
    // One plan per statement, whatever its parameters: without statistics there is nothing to be learnt from them.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.execute_batch("PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;")?;
    Ok(connection)
}

// Changing the mode takes the whole file, and SQLite does not wait for that by itself.
fn use_wal(connection: &Connection, path: &Path, patience: Duration) -> error::Result<()> {
    let begun = Instant::now();
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", (), |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                let text = format!("{}: this file system allows no write-ahead log, only {mode}", path.display());
                return Err(StoreError::Backend(text.into()).into());
            }
            Err(error) if is_busy(&error) && begun.elapsed() < patience => thread::sleep(Duration::from_millis(10)),
            Err(error) => return Err(Fault::Sqlite(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use super::*;

    // Nothing short of a loss of power would show it otherwise.
    #[test]
    fn every_commit_waits_for_the_disk() {
        let folder = env::temp_dir().join(format!("orchestrix-sqlite-database-{}", process::id()));
        fs::create_dir(&folder).unwrap();
        let connection = open_writer(&SqliteOptions::new(folder.join("jobs.db"))).unwrap();
        let mode: String = connection.query_row("PRAGMA journal_mode", (), |row| row.get(0)).unwrap();
        let full: i64 = connection.query_row("PRAGMA synchronous", (), |row| row.get(0)).unwrap();
        drop(connection);
        fs::remove_dir_all(folder).unwrap();
        assert_eq!((mode.as_str(), full), ("wal", 2));
    }
}
