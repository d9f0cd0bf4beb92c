//! What can go wrong between a program and its jobs.

use orchestrix_core::{Invalid, JobId};
use orchestrix_store::StoreError;
use thiserror::Error;

/// A result of the client.
pub type Result<T, E = ClientError> = std::result::Result<T, E>;

/// Why a client did not get what it asked for.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The store refused or did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The job has not finished yet.
    #[error("job {0} has not finished")]
    NotFinished(JobId),
    /// The job died.
    #[error("job {id} failed ({reason}): {error}")]
    Failed {
        /// Which job.
        id: JobId,
        /// Why it died, in a word.
        reason: String,
        /// What its last attempt said.
        error: String,
    },
    /// The job was cancelled.
    #[error("job {id} was cancelled ({reason})")]
    Cancelled {
        /// Which job.
        id: JobId,
        /// Why, in a word.
        reason: String,
    },
    /// What the job left behind is not what this program expects.
    #[error("the result of job {id} does not fit: {source}")]
    Output {
        /// Which job.
        id: JobId,
        /// Where it does not fit.
        source: serde_json::Error,
    },
}

impl From<Invalid> for ClientError {
    fn from(invalid: Invalid) -> Self {
        Self::Store(invalid.into())
    }
}
