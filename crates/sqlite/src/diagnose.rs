//! Examines a file for `orchestrix doctor` without changing it.
//!
//! If a write-ahead log exists beside the file, the file is opened read-only, and the log is left to its owner. If
//! none exists, opening the file creates one. Only a connection that may write removes it when it closes, so the file
//! is opened for writing and then restricted by `query_only`.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

use orchestrix_store::{PageRequest, Result, StoreSnapshot};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::{
    SqliteOptions,
    columns::Columns,
    coordination,
    error::{self, Error},
    lanes, migrate, queue,
    session::Session,
    statement::DIAGNOSE_DEAD_JOBS,
    worker,
};

/// How long to wait while another process holds an exclusive lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum number of reported defects.
const MAX_DEFECTS: usize = 10;

/// An open file. Its methods block.
#[derive(Debug)]
pub struct Examination {
    connection: Connection,
    options: SqliteOptions,
}

/// The schema of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// The version of our schema, or 0 if the file is empty.
    Version(i32),
    /// The file is the database of another program.
    Foreign,
}

/// The result of an integrity check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// The file is intact.
    None,
    /// Defects that were found. There may be more.
    Found(Vec<String>),
    /// The check hit its timeout before it found a defect.
    Unfinished,
}

/// The path of a file's write-ahead log.
pub fn wal_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push("-wal");
    name.into()
}

impl Examination {
    /// Opens an existing file.
    pub fn begin(options: SqliteOptions) -> Result<Self> {
        open(&options.path)
            .map_err(|error| error.into_store_error(&options.path))
            .map(|connection| Self { connection, options })
    }

    /// The journal mode. It is `wal` once a store has opened the file.
    pub fn journal_mode(&self) -> Result<String> {
        self.run(|connection| Ok(connection.query_row("PRAGMA journal_mode", (), |row| row.get(0))?))
    }

    /// The schema version, or that the file belongs to another program.
    pub fn schema(&self) -> Result<Schema> {
        self.run(|connection| {
            if !migrate::is_ours(connection)? {
                return Ok(Schema::Foreign);
            }
            Ok(Schema::Version(migrate::version(connection)?))
        })
    }

    /// Checks the integrity of the file for at most `timeout`.
    pub fn damage(&self, timeout: Duration) -> Result<Damage> {
        let interrupt = self.connection.get_interrupt_handle();
        let (done, ended) = mpsc::channel::<()>();
        let timer = thread::spawn(move || {
            // The other end is dropped when the check ends.
            if ended.recv_timeout(timeout) == Err(mpsc::RecvTimeoutError::Timeout) {
                interrupt.interrupt();
            }
        });
        let found = quick_check(&self.connection);
        drop(done);
        // The timer cannot panic.
        let _ = timer.join();
        match found {
            Ok(lines) if lines == ["ok"] => Ok(Damage::None),
            Ok(lines) => Ok(Damage::Found(lines)),
            Err(error) => match error.sqlite_error_code() {
                Some(ErrorCode::OperationInterrupted) => Ok(Damage::Unfinished),
                // The file is too damaged to be checked.
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    Ok(Damage::Found(vec![error.to_string()]))
                }
                _ => Err(Error::Sqlite(error).into_store_error(&self.options.path)),
            },
        }
    }

    /// The leader, nodes, workers, queues and lanes at one moment.
    pub fn snapshot(&self) -> Result<StoreSnapshot> {
        self.run(|connection| {
            connection.execute_batch("BEGIN")?;
            let session = Session::new(connection, self.options.clock.now(), &self.options);
            let snapshot = read_snapshot(&session);
            connection.execute_batch("COMMIT")?;
            snapshot
        })
    }

    fn run<T>(&self, work: impl FnOnce(&Connection) -> error::Result<T>) -> Result<T> {
        work(&self.connection).map_err(|error| error.into_store_error(&self.options.path))
    }
}

fn quick_check(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut prepared = connection.prepare(&format!("PRAGMA quick_check({MAX_DEFECTS})"))?;
    prepared.query_map((), |row| row.get(0))?.collect()
}

fn open(path: &Path) -> error::Result<Connection> {
    let flags = match wal_path(path).exists() {
        true => OpenFlags::SQLITE_OPEN_READ_ONLY,
        false => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(LOCK_TIMEOUT)?;
    connection.execute_batch("PRAGMA query_only = 1")?;
    Ok(connection)
}

fn read_snapshot(session: &Session<'_>) -> error::Result<StoreSnapshot> {
    let dead = session.first(DIAGNOSE_DEAD_JOBS, [StoreSnapshot::MAX_DEAD], |row| Columns(row).get(0))?;
    Ok(StoreSnapshot {
        now: session.now,
        epoch: coordination::epoch(session)?,
        nodes: coordination::list_nodes(session, &PageRequest::first(StoreSnapshot::MAX_ROWS))?.items,
        workers: worker::list(session, &PageRequest::first(StoreSnapshot::MAX_ROWS))?.items,
        queues: queue::depths(session, &PageRequest::first(StoreSnapshot::MAX_ROWS))?.items,
        lanes: lanes::list(session, StoreSnapshot::MAX_ROWS)?,
        dead: dead.unwrap_or(0),
    })
}
