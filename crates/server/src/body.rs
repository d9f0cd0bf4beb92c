//! Bodies: how large they may be, how long they may take to come, and that they are JSON.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use orchestrix_api::Code;

use crate::{App, refusal::Refusal};

/// The largest body of one request, and of one that carries many jobs or outcomes.
pub(crate) const ONE: usize = 2 * 1024 * 1024;
pub(crate) const MANY: usize = 32 * 1024 * 1024;

/// A body of JSON, not yet read.
pub(crate) struct Text<const LIMIT: usize>(Bytes);

impl<const LIMIT: usize> Text<LIMIT> {
    /// The text, if it is UTF-8.
    pub(crate) fn as_str(&self) -> Result<&str, Refusal> {
        std::str::from_utf8(&self.0).map_err(|_| Refusal::new(Code::MalformedRequest, "the body is not UTF-8"))
    }
}

impl<const LIMIT: usize> FromRequest<Arc<App>> for Text<LIMIT> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        let empty = request.headers().get(header::CONTENT_LENGTH).is_some_and(|length| length == "0");
        if !empty && !is_json(request.headers()) {
            let none = !request.headers().contains_key(header::TRANSFER_ENCODING)
                && !request.headers().contains_key(header::CONTENT_LENGTH);
            if !none {
                return Err(Refusal::new(Code::UnsupportedMediaType, "the content type must be application/json"));
            }
        }
        // What says that it is too large is not read at all.
        let said = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if said.is_some_and(|length: u64| length > LIMIT as u64) {
            return Err(too_large(LIMIT));
        }
        read(request, LIMIT, app.options.body_timeout).await.map(Self)
    }
}

async fn read(request: Request, limit: usize, patience: Duration) -> Result<Bytes, Refusal> {
    match tokio::time::timeout(patience, axum::body::to_bytes(request.into_body(), limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_limit(&error) => Err(too_large(limit)),
        Ok(Err(_)) => Err(Refusal::new(Code::MalformedRequest, "the body ended before it was complete")),
        Err(_) => Err(Refusal::new(Code::MalformedRequest, "the body took too long to arrive")),
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
