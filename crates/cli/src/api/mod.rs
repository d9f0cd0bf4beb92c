//! A client of the HTTP API. It talks to a server over a socket, or to the same router in this process over a
//! database.
//!
//! | module | what it owns |
//! |---|---|
//! | `request` | a request, and whether it may be repeated |
//! | `transport` | the two ways to send it |
//! | `error` | why there is no usable response |
//! | `role_view` | answers that depend on the key's role |
//!
//! A request that fails because the target is unreachable or overloaded is retried for up to `--connect-timeout`,
//! unless it may have taken effect and is not idempotent.

mod error;
mod request;
mod role_view;
mod transport;

use std::time::{Duration, Instant};

use orchestrix_api::ListResponse;
use orchestrix_client::http::{ApiResponse, HttpError};
use orchestrix_core::Backoff;
use orchestrix_doctor::ConnectFailure;
use orchestrix_store::PageRequest;
use serde::de::DeserializeOwned;

pub(crate) use error::{ApiError, Rejection};
pub(crate) use request::{Request, percent_encode};
pub(crate) use role_view::RoleView;

use crate::{arguments::Global, output::Page};
use transport::Transport;

/// The first and the longest delay before a retry, unless the server sends `Retry-After`.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// The most items of one page.
pub(crate) const MAX_PAGE: usize = PageRequest::<()>::MAX_LIMIT;

/// A client of the API.
pub(crate) struct ApiClient {
    transport: Transport,
    /// How long to retry a request.
    retry_timeout: Duration,
}

type Result<T, E = ApiError> = std::result::Result<T, E>;

impl ApiClient {
    /// Opens the server or the database that the global options name. Creates a missing database file only if
    /// `creates_file`.
    pub(crate) async fn open(global: &Global, creates_file: bool) -> anyhow::Result<Self> {
        Ok(Self { transport: Transport::open(global, creates_file).await?, retry_timeout: global.connect_timeout })
    }

    /// Closes the connection to the database, if there is one.
    pub(crate) async fn close(self) {
        self.transport.close().await;
    }

    /// Sends a request and deserializes the response.
    pub(crate) async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T> {
        let body = self.send(&request).await?;
        serde_json::from_slice(&body).map_err(|error| ApiError::InvalidResponse {
            target: self.transport.to_string(),
            error: format!("{}: {error}", request.path()),
        })
    }

    /// Sends a request whose response has no body.
    pub(crate) async fn execute(&self, request: Request) -> Result<()> {
        self.send(&request).await.map(drop)
    }

    /// Sends the operator's request and, if the key's role does not allow it, the client's request.
    pub(crate) async fn call_by_role<O: DeserializeOwned, C: DeserializeOwned>(
        &self,
        operator: Request,
        client: Request,
    ) -> Result<RoleView<O, C>> {
        match self.call(operator).await {
            Err(ApiError::Rejected(rejection)) if rejection.status == 403 => {
                self.call(client).await.map(RoleView::Client)
            }
            response => response.map(RoleView::Operator),
        }
    }

    /// Up to `limit` items of a list, from as many pages as needed, and the cursor of the rest.
    pub(crate) async fn collect_pages<T: DeserializeOwned>(
        &self,
        list: &Request,
        cursor: Option<String>,
        limit: usize,
    ) -> Result<Page<T>> {
        let mut collected = Page { items: Vec::new(), next_cursor: cursor };
        loop {
            let left = (limit - collected.items.len()).min(MAX_PAGE);
            let page: ListResponse<T> = self.call(list.page(collected.next_cursor.as_deref(), left)).await?;
            collected.items.extend(page.items);
            collected.next_cursor = page.next_cursor;
            if collected.next_cursor.is_none() || collected.items.len() >= limit {
                return Ok(collected);
            }
        }
    }

    async fn send(&self, request: &Request) -> Result<Vec<u8>> {
        let mut backoff = Backoff::new(RETRY_DELAYS.0, RETRY_DELAYS.1);
        let mut failing_since: Option<Instant> = None;
        loop {
            let answer = self.transport.send(request).await;
            if let Some(retry_after) = retry(&answer, request) {
                let delay = retry_after.unwrap_or_else(|| backoff.next_delay());
                let since = *failing_since.get_or_insert_with(Instant::now);
                if since.elapsed() + delay < self.retry_timeout {
                    tokio::time::sleep(delay).await;
                    continue;
                }
            }
            return self.read(answer, request);
        }
    }

    fn read(&self, answer: Result<ApiResponse, HttpError>, request: &Request) -> Result<Vec<u8>> {
        let target = || self.transport.to_string();
        match answer {
            Ok(answer) if answer.status.is_success() => Ok(answer.body),
            Ok(answer) => Err(Rejection::new(&answer, request, &self.transport).into()),
            Err(HttpError::InvalidRequest(error)) => Err(ApiError::InvalidResponse { target: target(), error }),
            Err(HttpError::Interrupted(error)) if let Some(uncertainty) = request.uncertainty() => {
                Err(ApiError::NoResponse { target: target(), error, uncertainty })
            }
            Err(error) => Err(ApiError::Unreachable { target: target(), error: error.to_string() }),
        }
    }
}

/// Whether to retry: `Some` with the server's `Retry-After`, if it sent one. A request that may have taken effect is
/// retried only if it is idempotent.
fn retry(answer: &Result<ApiResponse, HttpError>, request: &Request) -> Option<Option<Duration>> {
    let is_idempotent = request.uncertainty().is_none();
    match answer {
        // Rejected by admission, before it was processed.
        Ok(answer) if answer.status == 429 => Some(answer.retry_after),
        Ok(answer) if is_idempotent && matches!(answer.status.as_u16(), 502..=504) => Some(answer.retry_after),
        // A handshake that fails once fails every time.
        Err(HttpError::NotSent(error) | HttpError::Interrupted(error))
            if ConnectFailure::from_error(error).is_some() =>
        {
            None
        }
        Err(HttpError::NotSent(_)) => Some(None),
        Err(HttpError::Interrupted(_)) if is_idempotent => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_client::http::StatusCode;

    use super::*;

    #[test]
    fn a_request_that_may_have_taken_effect_is_not_retried_unless_idempotent() {
        let answer = |status: StatusCode| Ok(ApiResponse { status, retry_after: None, body: Vec::new() });
        let (get, post) = (Request::get("/"), Request::post("/"));
        for (answer, retries_get, retries_post) in [
            (answer(StatusCode::OK), false, false),
            (answer(StatusCode::NOT_FOUND), false, false),
            (answer(StatusCode::INTERNAL_SERVER_ERROR), false, false),
            (answer(StatusCode::TOO_MANY_REQUESTS), true, true),
            (answer(StatusCode::SERVICE_UNAVAILABLE), true, false),
            (answer(StatusCode::BAD_GATEWAY), true, false),
            (Err(HttpError::NotSent(String::new())), true, true),
            (Err(HttpError::Interrupted(String::new())), true, false),
            (Err(HttpError::InvalidRequest(String::new())), false, false),
            (Err(HttpError::NotSent("invalid peer certificate: UnknownIssuer".into())), false, false),
        ] {
            let retries = (retry(&answer, &get).is_some(), retry(&answer, &post).is_some());
            assert_eq!(retries, (retries_get, retries_post), "{answer:?}");
        }
    }
}
