//! What SQLite reports, in the store's terms.

use std::path::Path;

use orchestrix_core::{FieldError, IllegalTransition, Invalid};
use orchestrix_store::StoreError;
use rusqlite::ErrorCode;

/// A result inside this crate.
pub(crate) type Result<T, E = Fault> = std::result::Result<T, E>;

/// Why an operation did not succeed: SQLite's word, or the store's.
#[derive(Debug)]
pub(crate) enum Fault {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<FieldError> for Fault {
    fn from(error: FieldError) -> Self {
        Self::Store(error.into())
    }
}

impl From<Invalid> for Fault {
    fn from(error: Invalid) -> Self {
        Self::Store(error.into())
    }
}

impl From<IllegalTransition> for Fault {
    fn from(error: IllegalTransition) -> Self {
        Self::Store(error.into())
    }
}

impl Fault {
    /// The same for whoever called, with what can be done about it.
    pub(crate) fn at(self, path: &Path) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Sqlite(error) => describe(&error, path),
        }
    }
}

fn describe(error: &rusqlite::Error, path: &Path) -> StoreError {
    let file = path.display();
    let passing = |hint: &str| StoreError::Unavailable(format!("{file}: {error}: {hint}"));
    let lasting = |hint: &str| StoreError::Backend(format!("{file}: {error}: {hint}").into());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            passing("another process has held the file for too long")
        }
        Some(ErrorCode::DiskFull) => passing("nothing was written; free some space and try again"),
        // What SQLite keeps beside the file ends in this too when there is no space for it.
        Some(ErrorCode::SystemIoFailure) => passing("nothing was written; is the disk full or failing?"),
        Some(ErrorCode::OutOfMemory) => passing("nothing was written; try again"),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            lasting("the file and its directory must be writable")
        }
        Some(ErrorCode::CannotOpen) => lasting("does its directory exist, and may this process write there?"),
        Some(ErrorCode::NotADatabase) => lasting("choose another path; this file was left as it is"),
        Some(ErrorCode::DatabaseCorrupt) => lasting("restore it from a backup"),
        _ => StoreError::Backend(format!("{file}: {error}").into()),
    }
}

/// Whether another connection is in the way.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed)
    )
}

/// A row that this program cannot read: written by hand, or by a newer one.
pub(crate) fn corrupt(what: &str, error: impl std::fmt::Display) -> StoreError {
    StoreError::Backend(format!("a row holds what this program does not know: {what}: {error}").into())
}
