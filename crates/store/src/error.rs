//! What can go wrong in a store, by what a caller would do about it.

use orchestrix_core::{
    FieldError, IllegalTransition, Invalid, JobId, KeyId, OperationId, ScheduleName, enqueue::KeyReused,
};
use thiserror::Error;

use crate::Epoch;

/// A result of a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store did not do what it was asked. Nothing was written, unless the variant says otherwise.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The request breaks a rule; every bad field is named.
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
    /// As many operations are under way as may be.
    #[error("{0} operations are under way: wait for one to end, or abort one")]
    TooManyOperations(usize),
    /// There is a key of this id.
    #[error("there is a key {0} already")]
    KeyExists(KeyId),
    /// The key was used for a different request.
    #[error("the idempotency key was used for a different request, job {existing}")]
    IdempotencyKeyReused {
        /// The job that the key stands for.
        existing: JobId,
    },
    /// The token does not own its job any more: it was reaped, leased again, finished or cancelled.
    #[error("the lease is lost")]
    LeaseLost,
    /// The job's state does not allow this.
    #[error(transparent)]
    IllegalTransition(#[from] IllegalTransition),
    /// Another node leads: what was done in the name of an earlier leader is refused.
    #[error("epoch {epoch} is over, {current} has begun: another node leads")]
    Deposed {
        /// The epoch that it was done in.
        epoch: Epoch,
        /// The epoch that it is.
        current: Epoch,
    },
    /// The database is away, or too slow. Whether the request was carried out is unknown; try again later.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The database holds a schema that this program does not know.
    #[error("{0}")]
    Schema(String),
    /// The backend failed in a way that trying again will not mend.
    #[error("the store failed: {0}")]
    Backend(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// The same error for another of those who shared a call that failed as a whole.
    pub fn alike(&self) -> Self {
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
