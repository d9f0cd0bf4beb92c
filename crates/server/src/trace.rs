//! Around every request: its id, its line in the log, and its id in whatever problem is answered.

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

use crate::{TraceTie, jobs::traceparent::traceparent, refusal::ProblemBody};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id of a request that is taken from its client.
const MAX_ID: usize = 128;

/// A request as it is known in logs and traces.
pub(crate) struct Traced {
    id: String,
    span: Span,
    begun: Instant,
}

impl Traced {
    /// Gives the request an id, or keeps the one it came with.
    pub(crate) fn begin(request: &mut Request, route: Option<&MatchedPath>, tie: Option<TraceTie>) -> Self {
        let id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
        let id = match id {
            Some(id) if (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) => {
                id.to_owned()
            }
            _ => new_id(),
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
            // Names with a dot are for whoever exports traces.
            otel.name = %format_args!("{method} {route}"),
            otel.kind = "server",
            otel.status_code = Empty,
        );
        belong(request, &span, tie);
        Self { id, span, begun: Instant::now() }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    pub(crate) fn panicked(&self) {
        self.span.in_scope(|| tracing::error!("the request ended in a panic"));
    }

    /// Puts the id where the client finds it, and a line into the log.
    pub(crate) fn end(self, mut response: Response) -> Response {
        let Self { id, span, begun } = self;
        if let Some(ProblemBody(mut problem)) = response.extensions_mut().remove::<ProblemBody>() {
            problem.request_id.clone_from(&id);
            *response.body_mut() = Body::from(serde_json::to_vec(&problem).unwrap_or_default());
            let kind = HeaderValue::from_static("application/problem+json");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
        if let Ok(id) = HeaderValue::try_from(id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        span.in_scope(|| {
            let (status, took) = (response.status().as_u16(), begun.elapsed());
            match status {
                500.. => tracing::warn!(status, ?took, "answered"),
                _ => tracing::debug!(status, ?took, "answered"),
            }
            span.record("status", status);
            if status >= 500 {
                span.record("otel.status_code", "error");
            }
        });
        response
    }
}

// Of nobody else's request: a number that this process drew once, and one that it counts up.
fn new_id() -> String {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| Uuid::now_v7().as_u64_pair().1);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{:016x}{:016x}", *PROCESS, COUNT.fetch_add(1, Ordering::Relaxed))
}

// Makes the span part of the trace that the request came from, and what follows from the request part of the span's.
fn belong(request: &mut Request, span: &Span, tie: Option<TraceTie>) {
    let came = traceparent(request.headers());
    let own = tie.and_then(|tie| tie(span, came.as_deref()));
    if let Some(trace_id) = own.as_ref().or(came.as_ref()).and_then(|trace| trace.get(3..35)) {
        span.record("trace_id", trace_id);
    }
    if let Some(own) = own.and_then(|own| HeaderValue::from_str(&own).ok()) {
        request.headers_mut().insert(TRACEPARENT, own);
    }
}
