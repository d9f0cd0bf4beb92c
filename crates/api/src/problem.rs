//! Errors as RFC 9457 problems, and the codes that programs go by.

use orchestrix_core::{FieldError, Invalid, JobId};
use serde::{Deserialize, Serialize};

use crate::object::MAX_ERRORS;

/// What went wrong, in a word that never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Code {
    /// The body is not JSON, or not of the kind that is read here.
    MalformedRequest,
    /// Fields break rules; `errors` names them all.
    ValidationFailed,
    /// The key was used for a different request.
    IdempotencyKeyReused,
    /// Nobody knows who asks.
    Unauthenticated,
    /// It is not for whoever asks.
    Forbidden,
    /// No job has this id.
    JobNotFound,
    /// No schedule has this name.
    ScheduleNotFound,
    /// No API key has this id.
    KeyNotFound,
    /// No operation has this id.
    OperationNotFound,
    /// No worker has this name.
    WorkerNotFound,
    /// As many operations are under way as may be.
    TooManyOperations,
    /// There is nothing at this path.
    NotFound,
    /// The path does not take this method.
    MethodNotAllowed,
    /// The body is not said to be JSON.
    UnsupportedMediaType,
    /// The body is over its limit.
    PayloadTooLarge,
    /// The job is not over yet.
    NotFinished,
    /// The job is over.
    JobFinished,
    /// The job failed, so it has no result.
    JobFailed,
    /// The job was cancelled, so it has no result.
    JobCancelled,
    /// The token does not own its job any more; nothing was changed.
    LeaseLost,
    /// Too many requests at once; try again.
    RateLimited,
    /// The database is away or too slow; try again.
    Unavailable,
    /// A fault of ours.
    Internal,
}

impl Code {
    /// The status that it comes with.
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

    /// What it says to a person.
    pub const fn title(self) -> &'static str {
        match self {
            Self::MalformedRequest => "The request cannot be read",
            Self::ValidationFailed => "The request breaks a rule",
            Self::IdempotencyKeyReused => "The idempotency key was used for a different request",
            Self::Unauthenticated => "A valid key is needed",
            Self::Forbidden => "This is not allowed",
            Self::JobNotFound => "There is no such job",
            Self::ScheduleNotFound => "There is no such schedule",
            Self::KeyNotFound => "There is no such key",
            Self::OperationNotFound => "There is no such operation",
            Self::WorkerNotFound => "There is no such worker",
            Self::TooManyOperations => "Too many operations are under way",
            Self::NotFound => "There is nothing here",
            Self::MethodNotAllowed => "The method is not allowed here",
            Self::UnsupportedMediaType => "The body must be JSON",
            Self::PayloadTooLarge => "The body is too large",
            Self::NotFinished => "The job is not over yet",
            Self::JobFinished => "The job is over",
            Self::JobFailed => "The job failed",
            Self::JobCancelled => "The job was cancelled",
            Self::LeaseLost => "The lease is lost",
            Self::RateLimited => "Too many requests",
            Self::Unavailable => "The database is away",
            Self::Internal => "Something went wrong here",
        }
    }

    /// The code as it is spelled.
    pub fn as_str(self) -> String {
        serde_json::to_value(self).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// An error as it is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// A URI that stands for the kind of problem.
    pub r#type: String,
    /// What it says to a person.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened this time.
    pub detail: String,
    /// What happened, for programs.
    pub code: Code,
    /// The request, to be found in the logs.
    pub request_id: String,
    /// Every bad field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<BadField>,
    /// The job that the idempotency key stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = "uuid"))]
    pub job_id: Option<JobId>,
}

/// One field of a request and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BadField {
    /// The field, such as `maxAttempts` or `jobs[3].queue`.
    pub field: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl From<FieldError> for BadField {
    fn from(error: FieldError) -> Self {
        Self { field: error.field, message: error.message }
    }
}

impl Problem {
    /// A problem of this kind.
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

    /// A request whose fields break rules.
    pub fn invalid(invalid: Invalid) -> Self {
        let n = invalid.errors.len();
        let detail = match n {
            1 => invalid.errors[0].to_string(),
            _ => format!("{n} fields break a rule"),
        };
        let errors = invalid.errors.into_iter().take(MAX_ERRORS).map(BadField::from).collect();
        Self { errors, ..Self::new(Code::ValidationFailed, detail) }
    }
}
