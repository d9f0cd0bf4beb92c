//! Errors of a request to the API.

use std::{fmt, time::Duration};

use orchestrix_api::Code;
use orchestrix_client::http::{ApiResponse, ProblemBody};
use orchestrix_doctor::ConnectFailure;
use thiserror::Error;

use super::{Request, transport::Transport};

/// Why a request has no usable response.
#[derive(Debug, Error)]
pub(crate) enum ApiError {
    /// The API answered with an error status.
    #[error(transparent)]
    Rejected(Box<Rejection>),
    /// The target could not be reached, or the TLS or HTTP handshake failed.
    #[error("{}", describe_unreachable(target, error))]
    Unreachable { target: String, error: String },
    /// The connection broke after a request that is not idempotent was sent.
    #[error("no response from {target}: {error}")]
    NoResponse { target: String, error: String, uncertainty: &'static str },
    /// The response is not one of this API, or of another version of it.
    #[error("{target} sent a response that cannot be read: {error}")]
    InvalidResponse { target: String, error: String },
}

fn describe_unreachable(target: &str, error: &str) -> String {
    match ConnectFailure::from_error(error) {
        Some(failure) => failure.describe(target, error),
        None => format!("cannot reach {target}: {error}"),
    }
}

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(Box::new(rejection))
    }
}

/// A response with an error status, and what is needed to give advice about it.
#[derive(Debug, Error)]
pub(crate) struct Rejection {
    pub(crate) status: u16,
    pub(crate) problem: ProblemBody,
    /// Whether a server sent it, rather than the API in this process.
    pub(crate) is_remote: bool,
    /// Whether the request carried an API key.
    pub(crate) has_key: bool,
    /// The role that the request needs.
    pub(crate) required_role: &'static str,
    /// When to retry, if the server said so.
    pub(crate) retry_after: Option<Duration>,
    /// What to say if the request may have taken effect.
    pub(crate) uncertainty: Option<&'static str>,
}

impl Rejection {
    pub(super) fn new(answer: &ApiResponse, request: &Request, transport: &Transport) -> Self {
        Self {
            status: answer.status.as_u16(),
            problem: ProblemBody::parse(&answer.body),
            is_remote: transport.is_remote(),
            has_key: transport.has_key(),
            required_role: request.required_role(),
            retry_after: answer.retry_after,
            uncertainty: request.uncertainty(),
        }
    }

    /// The rejection of one item in a request about several. Nothing was done to that item.
    pub(crate) fn of_item(code: Code, detail: String) -> Self {
        let problem = ProblemBody { code: code.as_str(), detail, ..ProblemBody::default() };
        Self {
            status: code.status(),
            problem,
            is_remote: true,
            has_key: true,
            required_role: "operator",
            retry_after: None,
            uncertainty: None,
        }
    }
}

// Several invalid fields get a line each; a single one is already in the detail.
impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProblemBody { code, detail, errors, .. } = &self.problem;
        match (code.as_str(), detail.as_str()) {
            ("", _) => return write!(f, "the server answered with status {}", self.status),
            (code, "") => write!(f, "{code}")?,
            (_, detail) => f.write_str(detail)?,
        }
        if errors.len() > 1 {
            for error in errors {
                write!(f, "\n  {}: {}", error.field, error.message)?;
            }
        }
        Ok(())
    }
}
