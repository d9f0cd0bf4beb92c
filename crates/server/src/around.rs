//! Around every request, once: what it is called, whether it is let in, how it is counted, and what it is answered if all else fails.
//!
//! One piece of middleware and not one for each of these: every one costs a boxed future and a copy of the way ahead, for every
//! request and for as long as it waits.

use std::{panic::AssertUnwindSafe, sync::Arc};

use axum::{
    body::{Body, Bytes},
    extract::{MatchedPath, Request, State},
    http::Method,
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use orchestrix_api::Code;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument;

use crate::{
    App,
    access::{Access, access},
    body::Arrived,
    gate::Turn,
    host, meter,
    refusal::Refusal,
    trace::Traced,
};

/// Lets a request in, and answers it whatever happens.
pub(crate) async fn around(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let access = access(&method, route.as_ref().map(MatchedPath::as_str));
    let traced = Traced::begin(&mut request, route.as_ref(), app.options.trace_tie);
    let answering = AssertUnwindSafe(answer(&app, access, request, next)).catch_unwind().instrument(traced.span());
    let response = answering.await.unwrap_or_else(|_| {
        traced.panicked();
        Refusal::new(Code::Internal, "something went wrong here; the log says what").into_response()
    });
    meter::answered(route.as_ref(), &method, &response, traced.begun());
    traced.end(response)
}

async fn answer(app: &App, access: Access, request: Request, next: Next) -> Response {
    match admit(app, access, request).await {
        Ok(Admitted { request, _turn, _room }) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// A request and what it holds until it is answered: the request itself is taken apart before its handler begins.
struct Admitted {
    request: Request,
    _turn: Option<Turn>,
    _room: Option<OwnedSemaphorePermit>,
}

async fn admit(app: &App, access: Access, request: Request) -> Result<Admitted, Refusal> {
    host::check(request.headers(), request.uri())?;
    let Some(limit) = access.body else { return Ok(Admitted { request, _turn: None, _room: None }) };
    let (mut parts, body) = request.into_parts();
    let (bytes, room) = match parts.method {
        // They have none, and what they send all the same is not looked at.
        Method::GET | Method::HEAD | Method::DELETE => (Bytes::new(), None),
        _ => app.inlet.take(&parts.headers, body, limit).await?,
    };
    let turn = app.gate.turn().await?;
    parts.extensions.insert(turn.clone());
    parts.extensions.insert(Arrived(bytes));
    Ok(Admitted { request: Request::from_parts(parts, Body::empty()), _turn: Some(turn), _room: room })
}
