//! Errors as HTTP responses, always `application/problem+json`. The one place that maps store errors to problem codes.

use std::time::Duration;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use orchestrix_api::{Code, Problem, RequestError};
use orchestrix_core::{Event, IllegalTransition};
use orchestrix_store::StoreError;

/// The default of the `Retry-After` header, in seconds.
const RETRY_AFTER: u64 = 1;

/// An error response: a problem, and how long the client should wait before it tries again.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) problem: Box<Problem>,
    retry_after: Option<Duration>,
}

impl ApiError {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    /// A 500 whose cause is in the log.
    pub(crate) fn internal() -> Self {
        Self::new(Code::Internal, "internal error; see the server's log")
    }

    /// A 429 with a `Retry-After` header.
    pub(crate) fn rate_limited(detail: &str, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(Code::RateLimited, detail) }
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self { problem: Box::new(problem), retry_after: None }
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        Problem::from(error).into()
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Invalid(invalid) => RequestError::from(invalid).into(),
            StoreError::JobNotFound(id) => Self::new(Code::JobNotFound, format!("there is no job {id}")),
            StoreError::ScheduleNotFound(name) => {
                Self::new(Code::ScheduleNotFound, format!("there is no schedule {name}"))
            }
            StoreError::OperationNotFound(id) => {
                Self::new(Code::OperationNotFound, format!("there is no operation {id}"))
            }
            error @ StoreError::TooManyOperations(_) => Self::new(Code::TooManyOperations, error.to_string()),
            StoreError::IdempotencyKeyReused { existing } => {
                let problem =
                    Problem::new(Code::IdempotencyKeyReused, format!("the idempotency key belongs to job {existing}"));
                Problem { job_id: Some(existing), ..problem }.into()
            }
            StoreError::LeaseLost => Self::new(Code::LeaseLost, "the lease is lost: the token no longer owns the job"),
            StoreError::IllegalTransition(transition) => {
                let code = match transition.from.is_terminal() {
                    true => Code::JobFinished,
                    false => Code::NotFinished,
                };
                Self::new(code, not_allowed(transition))
            }
            StoreError::Unavailable(error) => {
                tracing::warn!(%error, "store unavailable");
                Self::new(Code::Unavailable, "the database is unavailable or too slow; try again later")
            }
            // The text of a database error is for operators, not for clients.
            error => {
                tracing::error!(%error, "store error");
                Self::internal()
            }
        }
    }
}

// Speaks of the status, because clients do not know the internal states.
fn not_allowed(transition: IllegalTransition) -> String {
    let status = transition.from.status().to_string().to_lowercase();
    match transition.event {
        Event::Cancel => format!("it is {status} and can no longer be cancelled"),
        Event::Redrive => format!("it is {status}; only dead and cancelled jobs can be retried"),
        Event::Release(_) => format!("it is {status}; only held jobs can be released"),
        _ => format!("it is {status}, which does not allow this"),
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retryable = matches!(self.problem.code, Code::Unavailable | Code::RateLimited);
        let retry_after = self.retry_after.map_or(RETRY_AFTER, |wait| wait.as_secs_f64().ceil().max(1.0) as u64);
        let unauthenticated = self.problem.code == Code::Unauthenticated;
        let mut response = status.into_response();
        // The middleware adds the request id and serializes the body: see `trace`.
        response.extensions_mut().insert(ProblemBody(self.problem));
        if retryable {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
        }
        if unauthenticated {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The problem of a response, not yet serialized. It travels in the response's extensions.
#[derive(Debug, Clone)]
pub(crate) struct ProblemBody(pub(crate) Box<Problem>);
