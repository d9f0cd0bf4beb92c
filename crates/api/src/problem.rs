//! Errors as RFC 9457 problems, with stable codes for programs.

use orchestrix_core::{FieldError, Invalid, JobId};
use serde::{Deserialize, Serialize};

use crate::object_reader::MAX_ERRORS;

/// The stable code of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Code {
    /// The body or query cannot be parsed.
    MalformedRequest,
    /// One or more fields are invalid. `errors` lists them all.
    ValidationFailed,
    /// The idempotency key was used for a different request.
    IdempotencyKeyReused,
    /// The API key is missing or not valid.
    Unauthenticated,
    /// The API key does not permit the request.
    Forbidden,
    /// The job does not exist.
    JobNotFound,
    /// The schedule does not exist.
    ScheduleNotFound,
    /// The API key does not exist.
    KeyNotFound,
    /// The operation does not exist.
    OperationNotFound,
    /// The worker does not exist.
    WorkerNotFound,
    /// The limit of concurrent operations is reached.
    TooManyOperations,
    /// The path does not exist.
    NotFound,
    /// The path does not support the method.
    MethodNotAllowed,
    /// The content type of the body is not JSON.
    UnsupportedMediaType,
    /// The body exceeds its size limit.
    PayloadTooLarge,
    /// The job has not finished.
    NotFinished,
    /// The job has finished.
    JobFinished,
    /// The job failed and has no result.
    JobFailed,
    /// The job was cancelled and has no result.
    JobCancelled,
    /// The lease token no longer owns the job. Nothing was changed.
    LeaseLost,
    /// Too many requests. Retry after the delay in `Retry-After`.
    RateLimited,
    /// The database is unavailable. Retry after the delay in `Retry-After`.
    Unavailable,
    /// An internal error.
    Internal,
}

impl Code {
    /// The HTTP status of the code.
    pub const fn status(self) -> u16 {
        match self {
            Self::MalformedRequest => 400,
            Self::ValidationFailed | Self::IdempotencyKeyReused => 422,
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::JobNotFound
            | Self::ScheduleNotFound
            | Self::KeyNotFound
            | Self::OperationNotFound
            | Self::WorkerNotFound
            | Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::UnsupportedMediaType => 415,
            Self::PayloadTooLarge => 413,
            Self::NotFinished
            | Self::JobFinished
            | Self::JobFailed
            | Self::JobCancelled
            | Self::LeaseLost
            | Self::TooManyOperations => 409,
            Self::RateLimited => 429,
            Self::Unavailable => 503,
            Self::Internal => 500,
        }
    }

    /// A summary for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::MalformedRequest => "The request is malformed",
            Self::ValidationFailed => "The request is invalid",
            Self::IdempotencyKeyReused => "The idempotency key was used for a different request",
            Self::Unauthenticated => "A valid API key is required",
            Self::Forbidden => "The API key does not permit this",
            Self::JobNotFound => "Job not found",
            Self::ScheduleNotFound => "Schedule not found",
            Self::KeyNotFound => "API key not found",
            Self::OperationNotFound => "Operation not found",
            Self::WorkerNotFound => "Worker not found",
            Self::TooManyOperations => "Too many concurrent operations",
            Self::NotFound => "Not found",
            Self::MethodNotAllowed => "Method not allowed",
            Self::UnsupportedMediaType => "The body must be JSON",
            Self::PayloadTooLarge => "The body is too large",
            Self::NotFinished => "The job has not finished",
            Self::JobFinished => "The job has finished",
            Self::JobFailed => "The job failed",
            Self::JobCancelled => "The job was cancelled",
            Self::LeaseLost => "The lease is lost",
            Self::RateLimited => "Too many requests",
            Self::Unavailable => "The database is unavailable",
            Self::Internal => "Internal error",
        }
    }

    /// The code as the API spells it.
    pub fn as_str(self) -> String {
        serde_json::to_value(self).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// An error response (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// A URI that identifies the kind of problem.
    pub r#type: String,
    /// A summary of the kind of problem.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// A description of this occurrence of the problem.
    pub detail: String,
    /// The stable error code.
    pub code: Code,
    /// The request id, which also appears in the server's log.
    pub request_id: String,
    /// The invalid fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<BadField>,
    /// With `idempotency_key_reused`: the job that the key belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid"))]
    pub job_id: Option<JobId>,
}

/// An invalid field of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BadField {
    /// The path of the field, such as `maxAttempts` or `jobs[3].queue`.
    pub field: String,
    /// What is wrong with the field.
    pub message: String,
}

impl From<FieldError> for BadField {
    fn from(error: FieldError) -> Self {
        Self { field: error.field, message: error.message }
    }
}

impl Problem {
    /// Creates a problem.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            r#type: format!("urn:orchestrix:problem:{}", code.as_str()),
            title: code.title().into(),
            status: code.status(),
            detail: detail.into(),
            code,
            request_id: String::new(),
            errors: Vec::new(),
            job_id: None,
        }
    }

    /// Creates a problem of invalid fields.
    pub fn invalid(invalid: Invalid) -> Self {
        let n = invalid.errors.len();
        let detail = match n {
            1 => invalid.errors[0].to_string(),
            _ => format!("{n} fields are invalid"),
        };
        let errors = invalid.errors.into_iter().take(MAX_ERRORS).map(BadField::from).collect();
        Self { errors, ..Self::new(Code::ValidationFailed, detail) }
    }
}
