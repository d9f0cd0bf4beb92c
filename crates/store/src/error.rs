//! Store errors, one variant for each reaction of a caller.

use orchestrix_core::{
    FieldError, IllegalTransition, Invalid, JobId, KeyId, OperationId, ScheduleName, enqueue::KeyReused,
};
use thiserror::Error;

use crate::Epoch;

/// The result of a store call.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store call failed. Nothing was written, unless the variant says otherwise.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The request is invalid. Names every bad field.
    #[error("invalid request: {0}")]
    Invalid(#[from] Invalid),
    /// No job has this id.
    #[error("there is no job {0}")]
    JobNotFound(JobId),
    /// No schedule has this name.
    #[error("there is no schedule {0}")]
    ScheduleNotFound(ScheduleName),
    /// No operation has this id.
    #[error("there is no operation {0}")]
    OperationNotFound(OperationId),
    /// Too many bulk operations are running.
    #[error("{0} operations are running: wait for one to finish, or abort one")]
    TooManyOperations(usize),
    /// A key with this id exists.
    #[error("the key {0} already exists")]
    KeyExists(KeyId),
    /// The idempotency key belongs to a different request.
    #[error("the idempotency key was used for a different request, job {existing}")]
    IdempotencyKeyReused {
        /// The job that the key belongs to.
        existing: JobId,
    },
    /// The token no longer owns its job: the lease was reaped, or the job was leased again, finished or cancelled.
    #[error("the lease is lost")]
    LeaseLost,
    /// The job's state does not allow this.
    #[error(transparent)]
    IllegalTransition(#[from] IllegalTransition),
    /// Another node leads: the write of an earlier leader is refused.
    #[error("epoch {epoch} has ended and epoch {current} has begun: another node leads")]
    Deposed {
        /// The epoch of the write.
        epoch: Epoch,
        /// The current epoch.
        current: Epoch,
    },
    /// The database is unreachable or too slow. The outcome of the call is unknown; retry later.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// This program does not support the schema of the database.
    #[error("{0}")]
    Schema(String),
    /// The backend failed in a way that a retry does not fix.
    #[error("the store failed: {0}")]
    Backend(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// The same error for another caller of a shared call that failed as a whole.
    pub fn replicate(&self) -> Self {
        match self {
            Self::Unavailable(text) => Self::Unavailable(text.clone()),
            Self::Schema(text) => Self::Schema(text.clone()),
            Self::Backend(cause) => Self::Backend(cause.to_string().into()),
            other => Self::Backend(other.to_string().into()),
        }
    }
}

impl From<KeyReused> for StoreError {
    fn from(KeyReused { existing }: KeyReused) -> Self {
        Self::IdempotencyKeyReused { existing }
    }
}

impl From<FieldError> for StoreError {
    fn from(error: FieldError) -> Self {
        Self::Invalid(error.into())
    }
}
