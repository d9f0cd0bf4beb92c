//! The errors of a client.

use orchestrix_core::{Invalid, JobId};
use orchestrix_store::StoreError;
use thiserror::Error;

/// The result of a client operation.
pub type Result<T, E = ClientError> = std::result::Result<T, E>;

/// Why a client operation failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The store refused the request or is unavailable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The job has not finished yet.
    #[error("job {0} has not finished")]
    NotFinished(JobId),
    /// The job failed for good: it is dead.
    #[error("job {id} failed ({reason}): {error}")]
    Failed {
        /// The job's id.
        id: JobId,
        /// The reason code.
        reason: String,
        /// The error of its last failed attempt.
        error: String,
    },
    /// The job was cancelled.
    #[error("job {id} was cancelled ({reason})")]
    Cancelled {
        /// The job's id.
        id: JobId,
        /// The reason code.
        reason: String,
    },
    /// The job's result cannot be deserialized as its `Output`.
    #[error("the result of job {id} cannot be deserialized: {source}")]
    Output {
        /// The job's id.
        id: JobId,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl From<Invalid> for ClientError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}
