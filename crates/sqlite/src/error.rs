//! SQLite's errors as store errors.

use std::path::Path;

use orchestrix_core::{FieldError, IllegalTransition, Invalid};
use orchestrix_store::StoreError;
use rusqlite::ErrorCode;

/// A result inside this crate.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a read or a write failed: SQLite's error, or the store's refusal.
#[derive(Debug)]
pub(crate) enum Error {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<FieldError> for Error {
    fn from(error: FieldError) -> Self {
        Self::Store(error.into())
    }
}

impl From<Invalid> for Error {
    fn from(error: Invalid) -> Self {
        Self::Store(error.into())
    }
}

impl From<IllegalTransition> for Error {
    fn from(error: IllegalTransition) -> Self {
        Self::Store(error.into())
    }
}

impl Error {
    /// The error for the caller of the store. An error of SQLite gets the path and a hint at what to do.
    pub(crate) fn into_store_error(self, path: &Path) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Sqlite(error) => describe(&error, path),
        }
    }
}

// `Unavailable` where a retry may succeed, `Backend` where it cannot.
fn describe(error: &rusqlite::Error, path: &Path) -> StoreError {
    let file = path.display();
    let transient = |hint: &str| StoreError::Unavailable(format!("{file}: {error}: {hint}"));
    let permanent = |hint: &str| StoreError::Backend(format!("{file}: {error}: {hint}").into());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            transient("another process has held the file for too long")
        }
        Some(ErrorCode::DiskFull) => transient("nothing was written; free some space and try again"),
        // SQLite also reports this when there is no space for the files that it keeps beside the database.
        Some(ErrorCode::SystemIoFailure) => transient("nothing was written; is the disk full or failing?"),
        Some(ErrorCode::OutOfMemory) => transient("nothing was written; try again"),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            permanent("the file and its directory must be writable")
        }
        Some(ErrorCode::CannotOpen) => permanent("does its directory exist, and may this process write there?"),
        Some(ErrorCode::NotADatabase) => permanent("choose another path; this file was not changed"),
        Some(ErrorCode::DatabaseCorrupt) => permanent("restore it from a backup"),
        _ => StoreError::Backend(format!("{file}: {error}").into()),
    }
}

/// Whether another connection holds the lock that was needed.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed)
    )
}

/// The error for a row that this program cannot read: it was written by hand, or by a newer version.
pub(crate) fn corrupt(what: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Backend(format!("unreadable row (edited by hand, or by a newer version?): {what}: {error}").into())
}
