//! Around every request: its id, its line in the log, and its id in whatever problem is answered.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    http::{HeaderName, HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use orchestrix_api::Code;
use tracing::{Instrument, Span, field::Empty};
use uuid::Uuid;

use crate::{
    App, TraceTie,
    jobs::create::traceparent,
    refusal::{ProblemBody, Refusal},
};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id of a request that is taken from its client.
const MAX_ID: usize = 128;

/// Gives the request an id, or keeps the one it came with.
pub(crate) async fn trace(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let id = match id {
        Some(id) if (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) => id.to_owned(),
        _ => Uuid::now_v7().simple().to_string(),
    };
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str).to_owned();
    let method = request.method().clone();
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
    belong(&mut request, &span, app.options.trace_tie);
    let begun = Instant::now();
    let answering = AssertUnwindSafe(next.run(request)).catch_unwind().instrument(span.clone());
    let mut response = answering.await.unwrap_or_else(|_| {
        span.in_scope(|| tracing::error!("the request ended in a panic"));
        Refusal::new(Code::Internal, "something went wrong here; the log says what").into_response()
    });
    if let Some(ProblemBody(mut problem)) = response.extensions_mut().remove::<ProblemBody>() {
        problem.request_id.clone_from(&id);
        *response.body_mut() = Body::from(serde_json::to_vec(&problem).unwrap_or_default());
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
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
