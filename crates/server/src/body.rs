//! Request bodies: their size limit, their read timeout, the memory they may take together, and their media type.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use orchestrix_api::{Code, ObjectReader, RequestError};
use orchestrix_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{ServerOptions, admission::overloaded, api_error::ApiError};

/// The largest body of a request about one thing.
pub(crate) const MAX_BODY: usize = 2 * 1024 * 1024;
/// The largest body of a request that carries a batch of jobs or outcomes.
pub(crate) const MAX_BATCH_BODY: usize = 32 * 1024 * 1024;

/// Bodies above this size take milliseconds to parse, so they are parsed on a blocking thread.
const PARSE_INLINE: usize = 256 * 1024;

/// Bodies up to this declared size are exempt from the memory budget: one per connection takes little.
const SMALL_BODY: usize = 16 * 1024;

/// The JSON text of a request's body, not yet parsed.
pub(crate) struct JsonBody(Bytes);

impl JsonBody {
    /// The text. Fails if it is not UTF-8.
    pub(crate) fn as_str(&self) -> Result<&str, ApiError> {
        utf8(&self.0)
    }

    /// Parses the body. A large one is parsed on a blocking thread, so that it delays no other request.
    pub(crate) async fn read<T: Send + 'static>(
        self,
        parse: impl FnOnce(&str) -> Result<T, RequestError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let inline = self.0.len() <= PARSE_INLINE;
        let work = move || Ok(parse(self.as_str()?)?);
        if inline {
            return work();
        }
        match tokio::task::spawn_blocking(work).await {
            Ok(parsed) => parsed,
            Err(error) => Err(StoreError::Backend(Box::new(error)).into()),
        }
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, ApiError> {
    std::str::from_utf8(bytes).map_err(|_| ApiError::new(Code::MalformedRequest, "the body is not UTF-8"))
}

/// Rejects a body with fields where the operation accepts none. A client that sends `{"dryRun": true}` must not see it
/// ignored.
pub(crate) fn ensure_empty(bytes: &[u8]) -> Result<(), ApiError> {
    let text = utf8(bytes)?;
    if text.trim().is_empty() {
        return Ok(());
    }
    let object = ObjectReader::parse(text).map_err(RequestError::from)?;
    Ok(object.finish().map_err(RequestError::from)?)
}

/// A body that the middleware has read, stored in the request's extensions.
#[derive(Clone)]
pub(crate) struct ReceivedBody(pub(crate) Bytes);

impl<S: Send + Sync> FromRequestParts<S> for JsonBody {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.remove::<ReceivedBody>().map_or_else(Bytes::new, |ReceivedBody(bytes)| bytes)))
    }
}

/// Reads request bodies within a memory budget.
pub(crate) struct BodyReader {
    /// One permit per byte that may still be buffered.
    budget: Arc<Semaphore>,
    read_timeout: Duration,
    budget_timeout: Duration,
}

impl BodyReader {
    pub(crate) fn new(options: &ServerOptions) -> Self {
        // The budget must fit the largest body.
        let budget = options.max_buffered_body_bytes.clamp(MAX_BATCH_BODY, Semaphore::MAX_PERMITS);
        Self {
            budget: Arc::new(Semaphore::new(budget)),
            read_timeout: options.body_timeout,
            budget_timeout: options.admission_timeout,
        }
    }

    /// Reads a body of at most `limit` bytes. Returns it with its share of the memory budget, to be held until the
    /// request is answered.
    pub(crate) async fn read(
        &self,
        headers: &HeaderMap,
        body: Body,
        limit: usize,
    ) -> Result<(Bytes, Option<OwnedSemaphorePermit>), ApiError> {
        let declared = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let declared = declared.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        let absent = declared.unwrap_or(0) == 0 && !headers.contains_key(header::TRANSFER_ENCODING);
        if absent {
            return Ok((Bytes::new(), None));
        }
        if !is_json(headers) {
            return Err(ApiError::new(Code::UnsupportedMediaType, "the content type must be application/json"));
        }
        if declared.is_some_and(|length| length > limit) {
            return Err(too_large(limit));
        }
        let share = match declared {
            Some(length) if length <= SMALL_BODY => None,
            declared => Some(self.reserve(declared.unwrap_or(limit)).await?),
        };
        match tokio::time::timeout(self.read_timeout, axum::body::to_bytes(body, limit)).await {
            Ok(Ok(bytes)) => Ok((bytes, share)),
            Ok(Err(error)) if is_limit(&error) => Err(too_large(limit)),
            Ok(Err(_)) => Err(ApiError::new(Code::MalformedRequest, "the body ended before it was complete")),
            Err(_) => Err(ApiError::new(Code::MalformedRequest, "the body took too long to arrive")),
        }
    }

    async fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        match tokio::time::timeout(self.budget_timeout, Arc::clone(&self.budget).acquire_many_owned(bytes)).await {
            Ok(Ok(share)) => Ok(share),
            _ => Err(overloaded()),
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

fn too_large(limit: usize) -> ApiError {
    ApiError::new(Code::PayloadTooLarge, format!("the body is over the limit of {limit} bytes"))
}

fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}
