//! Around every request, once: what it is called, whether it is let in, how it is counted, and what it is answered if all else fails.
//!
//! One piece of middleware and not one for each of these: every one costs a boxed future and a copy of the way ahead, for every
//! request and for as long as it waits.

use std::{net::IpAddr, panic::AssertUnwindSafe, sync::Arc};

use axum::{
    body::{Body, Bytes},
    extract::{MatchedPath, Request, State},
    http::{Method, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use orchestrix_api::Code;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument;

use crate::{
    App, Auth,
    access::{Access, Who, access},
    auth::{
        audit::{self, Deed, Line},
        caller::Caller,
    },
    body::{Arrived, says_nothing},
    gate::Turn,
    host,
    live::take_key,
    meter,
    openapi::accepted_input::{AcceptedInput, OperationLookup},
    params::Params,
    refusal::Refusal,
    trace::Traced,
};

/// Lets a request in, and answers it whatever happens.
pub(crate) async fn around(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let access = access(&method, route.as_ref().map(MatchedPath::as_str));
    let traced = Traced::begin(&mut request, route.as_ref(), app.options.trace_tie);
    let answering =
        AssertUnwindSafe(answer(&app, access, traced.id(), request, next)).catch_unwind().instrument(traced.span());
    let response = answering.await.unwrap_or_else(|_| {
        traced.panicked();
        Refusal::new(Code::Internal, "something went wrong here; the log says what").into_response()
    });
    meter::answered(route.as_ref(), &method, &response, traced.begun());
    traced.end(response)
}

async fn answer(app: &App, access: Access, request_id: &str, request: Request, next: Next) -> Response {
    match admit(app, access, request_id, request).await {
        Ok(Admitted { request, line, _turn, _room }) => {
            let response = next.run(request).await;
            if let Some(line) = line {
                let outcome = audit::outcome(&response);
                line.end(&outcome).await;
            }
            response
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// A request and what it holds until it is answered: the request itself is taken apart before its handler begins.
struct Admitted {
    request: Request,
    line: Option<Line>,
    _turn: Option<Turn>,
    _room: Option<OwnedSemaphorePermit>,
}

async fn admit(app: &App, access: Access, request_id: &str, request: Request) -> Result<Admitted, Refusal> {
    let (mut parts, body) = request.into_parts();
    take_key(&mut parts.headers);
    let caller = identify(app, access, &parts).await?;
    let takes = match described(app, &parts) {
        // Nothing can be done by it, so it is nothing for the audit: the router, which has no more than is described, refuses it.
        OperationLookup::MethodNotDocumented => None,
        // A page, which takes what it likes.
        OperationLookup::NotDocumented => Some(AcceptedInput { query: true, body: true }),
        OperationLookup::Operation(takes) => Some(takes),
    };
    let Some((takes, limit)) = takes.zip(access.body) else {
        return Ok(Admitted { request: Request::from_parts(parts, body), line: None, _turn: None, _room: None });
    };
    if !takes.query {
        Params::none(&parts.uri)?;
    }
    let (bytes, room) = match parts.method {
        // They have none, and what they send all the same is not looked at.
        Method::GET | Method::HEAD => (Bytes::new(), None),
        _ => app.inlet.take(&parts.headers, body, limit).await?,
    };
    if !takes.body {
        says_nothing(&bytes)?;
    }
    let turn = app.gate.turn().await?;
    let line = match access.audit.of(&caller) {
        None => None,
        Some(keep) => {
            let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
            let deed = Deed {
                caller: &caller,
                action: format!("{} {route}", parts.method),
                uri: &parts.uri,
                body: keep.and_then(|keep| std::str::from_utf8(&bytes).ok().filter(|text| keep(text))),
                request_id,
            };
            Some(Line::begin(&app.store, deed).await?)
        }
    };
    parts.extensions.insert(caller);
    parts.extensions.insert(turn.clone());
    parts.extensions.insert(Arrived(bytes));
    Ok(Admitted { request: Request::from_parts(parts, Body::empty()), line, _turn: Some(turn), _room: room })
}

fn described(app: &App, parts: &Parts) -> OperationLookup {
    let route = parts.extensions.get::<MatchedPath>();
    let known = app.document.get().zip(route);
    known.map_or(OperationLookup::NotDocumented, |(document, route)| {
        document.operations.find(&parts.method, route.as_str())
    })
}

// Who asks, if they may ask this.
async fn identify(app: &App, access: Access, parts: &Parts) -> Result<Caller, Refusal> {
    let caller = match &app.options.auth {
        Auth::Anybody => {
            host::check(&parts.headers, &parts.uri)?;
            return Ok(app.host.clone());
        }
        Auth::Own(_) => return Ok(app.host.clone()),
        // Nothing to hide, and nobody to be told apart.
        Auth::Keys if access.who == Who::Anybody => return Ok(app.host.clone()),
        Auth::Keys => {
            let from = parts.extensions.get::<Peer>().map(|peer| peer.0);
            app.keys.caller(&parts.headers, from, access.needs()).await?
        }
    };
    if !access.who.has(caller.role()) {
        return Err(Refusal::new(Code::Forbidden, format!("the key's role, {}, does not allow this", caller.role())));
    }
    if !access.bound && caller.tenant().is_some() {
        return Err(Refusal::new(Code::Forbidden, "this is not for a key that is bound to a tenant"));
    }
    Ok(caller)
}

/// Where a request came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);
