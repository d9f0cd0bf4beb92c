//! Why a request body or query was rejected.

use orchestrix_core::{FieldError, Invalid};

use crate::{Code, MalformedJson, Problem};

/// Why a request was rejected before it reached the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestError {
    /// The text is not a JSON object.
    Malformed(MalformedJson),
    /// A payload, result or checkpoint exceeds its size limit.
    TooLarge(FieldError),
    /// One or more fields are invalid.
    Invalid(Invalid),
}

impl From<MalformedJson> for RequestError {
    fn from(malformed: MalformedJson) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<Invalid> for RequestError {
    fn from(invalid: Invalid) -> Self {
        match invalid.errors.iter().find(|error| exceeds_size_limit(error)) {
            Some(error) => Self::TooLarge(error.clone()),
            None => Self::Invalid(invalid),
        }
    }
}

fn exceeds_size_limit(error: &FieldError) -> bool {
    let last = error.field.rsplit('.').next().unwrap_or_default();
    matches!(last, "payload" | "result" | "checkpoint") && error.message.contains("over the limit")
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Malformed(malformed) => Self::new(Code::MalformedRequest, format!("the body {malformed}")),
            RequestError::TooLarge(error) => Self::new(Code::PayloadTooLarge, error.to_string()),
            RequestError::Invalid(invalid) => Self::invalid(invalid),
        }
    }
}
