//! Errors as they are answered: always `application/problem+json`.

use std::time::Duration;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use orchestrix_api::{Code, Problem, RequestError};
use orchestrix_core::{Event, IllegalTransition};
use orchestrix_store::StoreError;

/// How long to wait before a request that was turned away is sent again, in seconds.
const RETRY_AFTER: u64 = 1;

/// An answer that is not what was asked for.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) Box<Problem>, Option<Duration>);

impl Refusal {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(code, detail)), None)
    }
}

impl Refusal {
    /// For whoever should come again after this long.
    pub(crate) fn wait(detail: &str, wait: Duration) -> Self {
        let mut refusal = Self::new(Code::RateLimited, detail);
        refusal.1 = Some(wait);
        refusal
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem), None)
    }
}

impl From<RequestError> for Refusal {
    fn from(refusal: RequestError) -> Self {
        Problem::from(refusal).into()
    }
}

impl From<StoreError> for Refusal {
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
                let problem = Problem::new(Code::IdempotencyKeyReused, format!("it stands for job {existing}"));
                Problem { job_id: Some(existing), ..problem }.into()
            }
            StoreError::LeaseLost => Self::new(Code::LeaseLost, "the token does not own its job any more"),
            StoreError::IllegalTransition(transition) => {
                let code = match transition.from.is_terminal() {
                    true => Code::JobFinished,
                    false => Code::NotFinished,
                };
                Self::new(code, not_allowed(transition))
            }
            StoreError::Unavailable(error) => {
                tracing::warn!(%error, "the store is away");
                Self::new(Code::Unavailable, "the database is away or too slow; try again")
            }
            // What a database says is for whoever runs it.
            error => {
                tracing::error!(%error, "the store failed");
                Self::new(Code::Internal, "something went wrong here; the log says what")
            }
        }
    }
}

// In the words of clients: no other is theirs to know.
fn not_allowed(transition: IllegalTransition) -> String {
    let status = transition.from.status().to_string().to_lowercase();
    match transition.event {
        Event::Cancel => format!("it is {status} and can no longer be cancelled"),
        Event::Redrive => format!("it is {status}; only dead and cancelled jobs can be retried"),
        Event::Release(_) => format!("it is {status}; only held jobs can be released"),
        _ => format!("it is {status}, which does not allow this"),
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry = matches!(self.0.code, Code::Unavailable | Code::RateLimited);
        let wait = self.1.map_or(RETRY_AFTER, |wait| wait.as_secs_f64().ceil().max(1.0) as u64);
        let anonymous = self.0.code == Code::Unauthenticated;
        let mut response = status.into_response();
        // Whoever knows the request puts its id in and writes it: see `trace`.
        response.extensions_mut().insert(ProblemBody(self.0));
        if retry {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        if anonymous {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// A problem that waits for the id of its request.
#[derive(Debug, Clone)]
pub(crate) struct ProblemBody(pub(crate) Box<Problem>);
