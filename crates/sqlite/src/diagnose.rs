//! A look at a file by somebody who wants to know what is wrong with it.
//!
//! Nothing is changed. Where a log stands beside the file it is opened for reading only, and the log is left to whoever wrote
//! it; where none does, a connection that could write takes its own away when it closes, which one that only reads cannot.

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
    SqliteOptions, coordination,
    error::{self, Fault},
    inspect, lanes, migrate,
    session::Session,
    statement::DIAGNOSE_DEAD,
    worker,
};

/// How long to wait for another process that has the whole file.
const PATIENCE: Duration = Duration::from_secs(3);
/// The most faults that are told.
const FAULTS: usize = 10;

/// A file that is being looked at. Its methods take as long as they take: not for a thread that others wait for.
#[derive(Debug)]
pub struct Examination {
    connection: Connection,
    options: SqliteOptions,
}

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// Ours, or empty, in this version; 0 where there is none yet.
    Version(i32),
    /// Another program's.
    Foreign,
}

/// What a search for damage found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// None.
    None,
    /// These, and perhaps more.
    Found(Vec<String>),
    /// None within its time.
    Unfinished,
}

/// Where the log of a file is, if it has one.
pub fn log_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push("-wal");
    name.into()
}

impl Examination {
    /// Opens a file that is there.
    pub fn begin(options: SqliteOptions) -> Result<Self> {
        open(&options.path).map_err(|fault| fault.at(&options.path)).map(|connection| Self { connection, options })
    }

    /// Its journal mode, `wal` where somebody of ours has written it.
    pub fn journal_mode(&self) -> Result<String> {
        self.told(|connection| Ok(connection.query_row("PRAGMA journal_mode", (), |row| row.get(0))?))
    }

    /// Whose it is, and in which version.
    pub fn schema(&self) -> Result<Schema> {
        self.told(|connection| {
            if !migrate::is_ours(connection)? {
                return Ok(Schema::Foreign);
            }
            Ok(Schema::Version(migrate::version(connection)?))
        })
    }

    /// Looks for damage, for as long as this.
    pub fn damage(&self, patience: Duration) -> Result<Damage> {
        let interrupt = self.connection.get_interrupt_handle();
        let (done, ended) = mpsc::channel::<()>();
        let guard = thread::spawn(move || {
            // Anything but a word in time: the other end is gone when the search has ended.
            if ended.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout) {
                interrupt.interrupt();
            }
        });
        let found = quick_check(&self.connection);
        drop(done);
        // It only waits.
        let _ = guard.join();
        match found {
            Ok(lines) if lines == ["ok"] => Ok(Damage::None),
            Ok(lines) => Ok(Damage::Found(lines)),
            Err(error) => match error.sqlite_error_code() {
                Some(ErrorCode::OperationInterrupted) => Ok(Damage::Unfinished),
                // Too damaged to be searched.
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    Ok(Damage::Found(vec![error.to_string()]))
                }
                _ => Err(Fault::Sqlite(error).at(&self.options.path)),
            },
        }
    }

    /// Who leads, who works, what waits.
    pub fn standing(&self) -> Result<StoreSnapshot> {
        self.told(|connection| {
            connection.execute_batch("BEGIN")?;
            let session = Session::new(connection, self.options.clock.now(), &self.options);
            let standing = standing(&session);
            connection.execute_batch("COMMIT")?;
            standing
        })
    }

    fn told<T>(&self, work: impl FnOnce(&Connection) -> error::Result<T>) -> Result<T> {
        work(&self.connection).map_err(|fault| fault.at(&self.options.path))
    }
}

fn quick_check(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut prepared = connection.prepare(&format!("PRAGMA quick_check({FAULTS})"))?;
    prepared.query_map((), |row| row.get(0))?.collect()
}

fn open(path: &Path) -> error::Result<Connection> {
    let flags = match log_of(path).exists() {
        true => OpenFlags::SQLITE_OPEN_READ_ONLY,
        false => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    connection.execute_batch("PRAGMA query_only = 1")?;
    Ok(connection)
}

fn standing(session: &Session<'_>) -> error::Result<StoreSnapshot> {
    let dead = session.first(DIAGNOSE_DEAD, [StoreSnapshot::MAX_DEAD], |row| Ok(row.get(0)?))?;
    Ok(StoreSnapshot {
        now: session.now,
        epoch: coordination::epoch(session)?,
        nodes: coordination::nodes(session, &PageRequest::first(StoreSnapshot::MAX_ROWS))?.items,
        workers: worker::list(session, &PageRequest::first(StoreSnapshot::MAX_ROWS))?.items,
        queues: inspect::depths(session, &PageRequest::first(StoreSnapshot::MAX_ROWS))?.items,
        lanes: lanes::list(session, StoreSnapshot::MAX_ROWS)?,
        dead: dead.unwrap_or(0),
    })
}
