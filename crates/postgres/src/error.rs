//! Errors of the server and the connection, as store errors.

use orchestrix_store::StoreError;
use tokio_postgres::error::SqlState;

/// Converts an error: [`StoreError::Unavailable`] if a retry may succeed, else [`StoreError::Backend`].
#[expect(clippy::needless_pass_by_value, reason = "map_err hands errors over")]
pub(crate) fn store_error(error: tokio_postgres::Error) -> StoreError {
    match error.as_db_error() {
        Some(db) => server_error(db.code().code(), db.message()),
        None => classified(error.is_closed() || caused_by_io(&error), describe(&error)),
    }
}

/// Like [`store_error`], for errors of `sqlx`.
#[cfg(feature = "sqlx")]
#[expect(clippy::needless_pass_by_value, reason = "map_err hands errors over")]
pub(crate) fn sqlx_error(error: sqlx::Error) -> StoreError {
    match error.as_database_error() {
        Some(db) => server_error(db.code().as_deref().unwrap_or_default(), db.message()),
        None => classified(matches!(error, sqlx::Error::Io(_)), error.to_string()),
    }
}

// Keeps the server's message: the driver's error only says that the server reported one.
fn server_error(code: &str, message: &str) -> StoreError {
    classified(is_transient(code) && !is_pooler_refusal(message), format!("{message} ({code})"))
}

fn classified(transient: bool, message: String) -> StoreError {
    if transient { StoreError::Unavailable(message) } else { StoreError::Backend(message.into()) }
}

/// Whether the statement lost a deadlock or a serialization conflict, so that it can be sent again.
pub(crate) fn is_conflict(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| *code == SqlState::T_R_DEADLOCK_DETECTED || *code == SqlState::T_R_SERIALIZATION_FAILURE)
}

/// Whether a single job of the statement may be the cause: a value that the server refused, or a locked idempotency
/// key.
pub(crate) fn is_of_one_job(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| matches!(&code.code()[..2], "22" | "23" | "54") || *code == SqlState::LOCK_NOT_AVAILABLE)
}

// A retry may succeed after a broken connection, but not after a value that cannot be encoded or decoded.
fn caused_by_io(error: &tokio_postgres::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    // Connect timeouts have no source.
    error.to_string().contains("connect")
}

// Connection errors, a server that starts or stops, exhausted resources, timeouts, conflicts, a read-only standby.
fn is_transient(code: &str) -> bool {
    matches!(code.get(..2), Some("08" | "40" | "53" | "55" | "57"))
        || code == SqlState::READ_ONLY_SQL_TRANSACTION.code()
}

// A pooler that does not support startup parameters refuses them every time, with the code of a broken connection.
fn is_pooler_refusal(message: &str) -> bool {
    message.starts_with("unsupported startup parameter")
}

/// The error with the server's message, which its `Display` leaves out.
pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} ({})", db.message(), db.code().code()),
        None => {
            let cause = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
            format!("{error}{cause}")
        }
    }
}
