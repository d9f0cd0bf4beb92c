//! What the server and the connection report, in the store's terms.

use orchestrix_store::StoreError;
use tokio_postgres::error::SqlState;

/// Sorts an error by what the caller can do about it.
#[expect(clippy::needless_pass_by_value, reason = "map_err hands errors over")]
pub(crate) fn store_error(error: tokio_postgres::Error) -> StoreError {
    match error.as_db_error() {
        Some(db) => server_error(db.code().code(), db.message()),
        None => sorted(error.is_closed() || caused_by_io(&error), describe(&error)),
    }
}

/// The same for somebody else's driver.
#[cfg(feature = "sqlx")]
#[expect(clippy::needless_pass_by_value, reason = "map_err hands errors over")]
pub(crate) fn sqlx_error(error: sqlx::Error) -> StoreError {
    match error.as_database_error() {
        Some(db) => server_error(db.code().as_deref().unwrap_or_default(), db.message()),
        None => sorted(matches!(error, sqlx::Error::Io(_)), error.to_string()),
    }
}

// In the server's own words: an error itself would only say that it came from there.
fn server_error(code: &str, message: &str) -> StoreError {
    sorted(is_passing(code) && !is_pooler(message), format!("{message} ({code})"))
}

fn sorted(passing: bool, words: String) -> StoreError {
    if passing { StoreError::Unavailable(words) } else { StoreError::Backend(words.into()) }
}

/// Whether the server undid the statement because of another one, so that sending it again is safe and sensible.
pub(crate) fn is_conflict(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| *code == SqlState::T_R_DEADLOCK_DETECTED || *code == SqlState::T_R_SERIALIZATION_FAILURE)
}

/// Whether one job of the statement may be at fault: a value the server refused, or a key that somebody holds on to.
pub(crate) fn is_of_one_job(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| matches!(&code.code()[..2], "22" | "23" | "54") || *code == SqlState::LOCK_NOT_AVAILABLE)
}

// A value that cannot be sent, or an answer that makes no sense, will be the same the next time; a broken line will not.
fn caused_by_io(error: &tokio_postgres::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    // Timeouts while connecting carry no cause.
    error.to_string().contains("connect")
}

// Connection trouble, a server that starts or stops, exhausted resources, timeouts, conflicts, a read-only standby.
fn is_passing(code: &str) -> bool {
    matches!(code.get(..2), Some("08" | "40" | "53" | "55" | "57"))
        || code == SqlState::READ_ONLY_SQL_TRANSACTION.code()
}

// A pooler that knows nothing of settings of a connection says so every time, with the code of a line that broke.
fn is_pooler(message: &str) -> bool {
    message.starts_with("unsupported startup parameter")
}

/// The message with the server's own words, which the error alone leaves out.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} ({})", db.message(), db.code().code()),
        None => {
            let cause = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
            format!("{error}{cause}")
        }
    }
}
