//! The HTTP API, as every command speaks it: to a server over a socket, or to the same router over a database in this process.
//!
//! | module | what it owns |
//! |---|---|
//! | `request` | what is asked, and whether it may be asked twice |
//! | `transport` | the two ways to an answer |
//! | `error` | why there is none, or not the one that was asked for |
//! | `seen` | what operators are told, or clients |
//!
//! A command builds a request, reads the answer, and prints. Who could not be reached, or has too much to do, is asked again
//! for as long as `--connect-timeout` says, unless what was asked may have been carried out and must not be done twice.

mod error;
mod request;
mod seen;
mod transport;

use std::time::{Duration, Instant};

use orchestrix_api::ListResponse;
use orchestrix_client::http::{Answer, CallError};
use orchestrix_store::PageRequest;
use serde::de::DeserializeOwned;

pub(crate) use error::{ApiError, Refused};
pub(crate) use request::{Request, escaped};
pub(crate) use seen::Seen;

use crate::{arguments::Global, handshake::Handshake, output::Page};
use transport::Transport;

/// The shortest and the longest pause before asking again, unless the server says how long.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// The most items of one answer.
pub(crate) const MOST: usize = PageRequest::<()>::MAX_LIMIT;

/// What a command talks to.
pub(crate) struct Api {
    transport: Transport,
    /// How long to go on asking somebody who is away.
    patience: Duration,
}

type Result<T, E = ApiError> = std::result::Result<T, E>;

impl Api {
    /// The server or the database that was asked for. A file that is not there is made only if `makes_files`.
    pub(crate) async fn open(global: &Global, makes_files: bool) -> anyhow::Result<Self> {
        Ok(Self { transport: Transport::open(global, makes_files).await?, patience: global.connect_timeout })
    }

    /// Ends what is under way.
    pub(crate) async fn close(self) {
        self.transport.close().await;
    }

    /// Asks, and reads the answer.
    pub(crate) async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T> {
        let body = self.send(&request).await?;
        serde_json::from_slice(&body).map_err(|error| ApiError::Unreadable {
            place: self.transport.to_string(),
            why: format!("{}: {error}", request.path()),
        })
    }

    /// Asks for something whose answer says nothing.
    pub(crate) async fn tell(&self, request: Request) -> Result<()> {
        self.send(&request).await.map(drop)
    }

    /// Asks as operators do and, with a key that is none of theirs, as clients do.
    pub(crate) async fn either<O: DeserializeOwned, C: DeserializeOwned>(
        &self,
        operators: Request,
        clients: Request,
    ) -> Result<Seen<O, C>> {
        match self.call(operators).await {
            Err(ApiError::Refused(refused)) if refused.status == 403 => self.call(clients).await.map(Seen::Client),
            answer => answer.map(Seen::Operator),
        }
    }

    /// Up to `limit` items of a list, through as many parts as that takes, and where the rest begins.
    pub(crate) async fn gather<T: DeserializeOwned>(
        &self,
        list: &Request,
        cursor: Option<String>,
        limit: usize,
    ) -> Result<Page<T>> {
        let mut page = Page { items: Vec::new(), next_cursor: cursor };
        loop {
            let left = (limit - page.items.len()).min(MOST);
            let part: ListResponse<T> = self.call(list.part(page.next_cursor.as_deref(), left)).await?;
            page.items.extend(part.items);
            page.next_cursor = part.next_cursor;
            if page.next_cursor.is_none() || page.items.len() >= limit {
                return Ok(page);
            }
        }
    }

    async fn send(&self, request: &Request) -> Result<Vec<u8>> {
        let mut pause = PAUSES.0;
        let mut failing: Option<Instant> = None;
        loop {
            let answer = self.transport.send(request).await;
            if let Some(wished) = again(&answer, request) {
                let next = wished.unwrap_or(pause);
                let since = *failing.get_or_insert_with(Instant::now);
                if since.elapsed() + next < self.patience {
                    tokio::time::sleep(next).await;
                    pause = (pause * 2).min(PAUSES.1);
                    continue;
                }
            }
            return self.read(answer, request);
        }
    }

    fn read(&self, answer: Result<Answer, CallError>, request: &Request) -> Result<Vec<u8>> {
        let place = || self.transport.to_string();
        match answer {
            Ok(answer) if answer.status.is_success() => Ok(answer.body),
            Ok(answer) => Err(Refused::of(&answer, request, &self.transport).into()),
            Err(CallError::Unwritable(why)) => Err(ApiError::Unreadable { place: place(), why }),
            Err(CallError::Broken(why)) if let Some(doubt) = request.doubt() => {
                Err(ApiError::Unknown { place: place(), why, doubt })
            }
            Err(error) => Err(ApiError::Away { place: place(), why: error.to_string() }),
        }
    }
}

/// Whether to ask again, and after how long if the server said so. What may have been carried out is not asked again unless
/// that makes no difference.
fn again(answer: &Result<Answer, CallError>, request: &Request) -> Option<Option<Duration>> {
    let harmless = request.doubt().is_none();
    match answer {
        // Turned away at the door.
        Ok(answer) if answer.status == 429 => Some(answer.retry_after),
        Ok(answer) if harmless && matches!(answer.status.as_u16(), 502..=504) => Some(answer.retry_after),
        // Who cannot be understood will not be a moment later.
        Err(CallError::NotSent(why) | CallError::Broken(why)) if Handshake::of(why).is_some() => None,
        Err(CallError::NotSent(_)) => Some(None),
        Err(CallError::Broken(_)) if harmless => Some(None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_client::http::StatusCode;

    use super::*;

    #[test]
    fn what_may_have_been_carried_out_is_not_asked_again() {
        let answer = |status: StatusCode| Ok(Answer { status, retry_after: None, body: Vec::new() });
        let (look, change) = (Request::get("/"), Request::post("/"));
        for (answer, looks, changes) in [
            (answer(StatusCode::OK), false, false),
            (answer(StatusCode::NOT_FOUND), false, false),
            (answer(StatusCode::INTERNAL_SERVER_ERROR), false, false),
            (answer(StatusCode::TOO_MANY_REQUESTS), true, true),
            (answer(StatusCode::SERVICE_UNAVAILABLE), true, false),
            (answer(StatusCode::BAD_GATEWAY), true, false),
            (Err(CallError::NotSent(String::new())), true, true),
            (Err(CallError::Broken(String::new())), true, false),
            (Err(CallError::Unwritable(String::new())), false, false),
            (Err(CallError::NotSent("invalid peer certificate: UnknownIssuer".into())), false, false),
        ] {
            let asks = (again(&answer, &look).is_some(), again(&answer, &change).is_some());
            assert_eq!(asks, (looks, changes), "{answer:?}");
        }
    }
}
