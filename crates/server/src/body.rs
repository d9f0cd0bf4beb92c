//! Bodies: how large they may be, how long they may take to come, how much of them is held at once, and that they are JSON.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use orchestrix_api::{Code, ObjectReader, RequestError};
use orchestrix_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{ServerOptions, gate::too_many, refusal::Refusal};

/// The largest body of one request, and of one that carries many jobs or outcomes.
pub(crate) const ONE: usize = 2 * 1024 * 1024;
pub(crate) const MANY: usize = 32 * 1024 * 1024;

/// A body longer than this takes milliseconds to be read.
const LONG: usize = 256 * 1024;

/// A body that says it is no larger than this is let in whatever else is held: as many as there are connections take little.
const SMALL: usize = 16 * 1024;

/// A body of JSON, not yet read.
pub(crate) struct Text(Bytes);

impl Text {
    /// The text, if it is UTF-8.
    pub(crate) fn as_str(&self) -> Result<&str, Refusal> {
        utf8(&self.0)
    }

    /// What is said in it. A long one is read where it keeps no other request waiting.
    pub(crate) async fn read<T: Send + 'static>(
        self,
        read: impl FnOnce(&str) -> Result<T, RequestError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let long = self.0.len() > LONG;
        let work = move || Ok(read(self.as_str()?)?);
        if !long {
            return work();
        }
        match tokio::task::spawn_blocking(work).await {
            Ok(read) => read,
            Err(error) => Err(StoreError::Backend(Box::new(error)).into()),
        }
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(bytes).map_err(|_| Refusal::new(Code::MalformedRequest, "the body is not UTF-8"))
}

/// Refuses a body that says something where none is taken: whoever sent `{"dryRun": true}` expects something of it that would not be done.
pub(crate) fn says_nothing(bytes: &[u8]) -> Result<(), Refusal> {
    let text = utf8(bytes)?;
    if text.trim().is_empty() {
        return Ok(());
    }
    let read = ObjectReader::parse(text).map_err(RequestError::from)?;
    Ok(read.finish().map_err(RequestError::from)?)
}

/// A body that has come as a whole, before the request was let in.
#[derive(Clone)]
pub(crate) struct Arrived(pub(crate) Bytes);

impl<S: Send + Sync> FromRequestParts<S> for Text {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.remove::<Arrived>().map_or_else(Bytes::new, |Arrived(bytes)| bytes)))
    }
}

/// Where bodies come in.
pub(crate) struct Inlet {
    /// Bytes of large bodies that may still be held.
    room: Arc<Semaphore>,
    timeout: Duration,
    patience: Duration,
}

impl Inlet {
    pub(crate) fn new(options: &ServerOptions) -> Self {
        // Whatever one request may send must fit.
        let room = options.body_room.clamp(MANY, Semaphore::MAX_PERMITS);
        Self { room: Arc::new(Semaphore::new(room)), timeout: options.body_timeout, patience: options.patience }
    }

    /// Takes in a body of at most `limit` bytes, and its share of the room, to be held for as long as its request is worked on.
    pub(crate) async fn take(
        &self,
        headers: &HeaderMap,
        body: Body,
        limit: usize,
    ) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Refusal> {
        let said = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let said = said.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        let none = said.unwrap_or(0) == 0 && !headers.contains_key(header::TRANSFER_ENCODING);
        if none {
            return Ok((Bytes::new(), None));
        }
        if !is_json(headers) {
            return Err(Refusal::new(Code::UnsupportedMediaType, "the content type must be application/json"));
        }
        // What says that it is too large is not read at all.
        if said.is_some_and(|length| length > limit) {
            return Err(too_large(limit));
        }
        let room = match said {
            Some(length) if length <= SMALL => None,
            said => Some(self.room(said.unwrap_or(limit)).await?),
        };
        match tokio::time::timeout(self.timeout, axum::body::to_bytes(body, limit)).await {
            Ok(Ok(bytes)) => Ok((bytes, room)),
            Ok(Err(error)) if is_limit(&error) => Err(too_large(limit)),
            Ok(Err(_)) => Err(Refusal::new(Code::MalformedRequest, "the body ended before it was complete")),
            Err(_) => Err(Refusal::new(Code::MalformedRequest, "the body took too long to arrive")),
        }
    }

    async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        match tokio::time::timeout(self.patience, Arc::clone(&self.room).acquire_many_owned(bytes)).await {
            Ok(Ok(room)) => Ok(room),
            _ => Err(too_many()),
        }
    }
}

fn is_limit(error: &axum::Error) -> bool {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = source {
        if error.to_string().contains("length limit exceeded") {
            return true;
        }
        source = error.source();
    }
    false
}

fn too_large(limit: usize) -> Refusal {
    Refusal::new(Code::PayloadTooLarge, format!("the body is over the limit of {limit} bytes"))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}
