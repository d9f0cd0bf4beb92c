//! The id, span and log line of a request, and its id in the response: the `x-request-id` header and the body of a
//! problem.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use axum::{
    body::Body,
    extract::{MatchedPath, Request},
    http::{HeaderName, HeaderValue, header},
    response::Response,
};
use tracing::{Span, field::Empty};
use uuid::Uuid;

use crate::{TracePropagator, api_error::ProblemBody, jobs::traceparent::traceparent};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A longer request id from a client is replaced.
const MAX_ID: usize = 128;

/// The identity of a request in logs and traces.
pub(crate) struct RequestTrace {
    id: String,
    span: Span,
    started_at: Instant,
}

impl RequestTrace {
    /// Starts the span of a request. Keeps the client's `x-request-id` if it is well-formed, else generates one.
    pub(crate) fn begin(
        request: &mut Request,
        route: Option<&MatchedPath>,
        propagator: Option<TracePropagator>,
    ) -> Self {
        let id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
        let id = match id {
            Some(id) if (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) => {
                id.to_owned()
            }
            _ => generate_id(),
        };
        let route = route.map_or("", MatchedPath::as_str);
        let method = request.method();
        let span = tracing::info_span!(
            "request",
            request_id = %id,
            %method,
            route,
            trace_id = Empty,
            status = Empty,
            // The OpenTelemetry exporter reads the fields with a dot.
            otel.name = %format_args!("{method} {route}"),
            otel.kind = "server",
            otel.status_code = Empty,
        );
        propagate(request, &span, propagator);
        Self { id, span, started_at: Instant::now() }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    pub(crate) fn started_at(&self) -> Instant {
        self.started_at
    }

    pub(crate) fn panicked(&self) {
        self.span.in_scope(|| tracing::error!("request handler panicked"));
    }

    /// Adds the request id to the response, and logs the request.
    pub(crate) fn end(self, mut response: Response) -> Response {
        let Self { id, span, started_at } = self;
        if let Some(ProblemBody(mut problem)) = response.extensions_mut().remove::<ProblemBody>() {
            problem.request_id.clone_from(&id);
            *response.body_mut() = Body::from(serde_json::to_vec(&problem).unwrap_or_default());
            let media_type = HeaderValue::from_static("application/problem+json");
            response.headers_mut().insert(header::CONTENT_TYPE, media_type);
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
        if let Ok(id) = HeaderValue::try_from(id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        span.in_scope(|| {
            let (status, took) = (response.status().as_u16(), started_at.elapsed());
            match status {
                500.. => tracing::warn!(status, ?took, "request finished"),
                _ => tracing::debug!(status, ?took, "request finished"),
            }
            span.record("status", status);
            if status >= 500 {
                span.record("otel.status_code", "error");
            }
        });
        response
    }
}

// Unique: a random number of this process, and a counter.
fn generate_id() -> String {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| Uuid::now_v7().as_u64_pair().1);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{:016x}{:016x}", *PROCESS, COUNT.fetch_add(1, Ordering::Relaxed))
}

// Makes the span a child of the incoming trace context, and replaces that context by the span's, so that enqueued jobs
// continue the span.
fn propagate(request: &mut Request, span: &Span, propagator: Option<TracePropagator>) {
    let incoming = traceparent(request.headers());
    let own = propagator.and_then(|propagator| propagator(span, incoming.as_deref()));
    if let Some(trace_id) = own.as_ref().or(incoming.as_ref()).and_then(|trace| trace.get(3..35)) {
        span.record("trace_id", trace_id);
    }
    if let Some(own) = own.and_then(|own| HeaderValue::from_str(&own).ok()) {
        request.headers_mut().insert(TRACEPARENT, own);
    }
}
