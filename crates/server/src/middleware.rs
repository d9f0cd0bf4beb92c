//! The middleware around every request. It assigns a request id, authenticates and authorizes the caller, reads the
//! body, acquires an admission permit, writes the audit entry, runs the handler, and records metrics. It answers 500
//! if the handler panics.
//!
//! It is one middleware instead of several, because each would cost a boxed future and a clone of the router for every
//! request, for as long as the request waits.

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
    admission::AdmissionPermit,
    api_error::ApiError,
    auth::{
        audit::{self, AuditedAction, OpenAuditEntry},
        principal::Principal,
    },
    body::{self, ReceivedBody},
    host,
    live::extract_key,
    metrics,
    openapi::accepted_input::{AcceptedInput, OperationLookup},
    params::QueryParams,
    route_policy::{AllowedRoles, RoutePolicy, route_policy},
    trace::RequestTrace,
};

/// Runs a request from its arrival to its response.
pub(crate) async fn request_middleware(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let policy = route_policy(&method, route.as_ref().map(MatchedPath::as_str));
    let trace = RequestTrace::begin(&mut request, route.as_ref(), app.options.trace_propagator);
    let responding =
        AssertUnwindSafe(respond(&app, policy, trace.id(), request, next)).catch_unwind().instrument(trace.span());
    let response = responding.await.unwrap_or_else(|_| {
        trace.panicked();
        ApiError::internal().into_response()
    });
    metrics::record_request(route.as_ref(), &method, &response, trace.started_at());
    trace.end(response)
}

async fn respond(app: &App, policy: RoutePolicy, request_id: &str, request: Request, next: Next) -> Response {
    match admit(app, policy, request_id, request).await {
        Ok(AdmittedRequest { request, audit_entry, _permit, _body_share }) => {
            let response = next.run(request).await;
            if let Some(entry) = audit_entry {
                let outcome = audit::outcome(&response);
                entry.close(&outcome).await;
            }
            response
        }
        Err(error) => error.into_response(),
    }
}

/// A request that may run, and what it holds until it is answered. The permits are not left in the request, because
/// extractors take it apart before the handler runs.
struct AdmittedRequest {
    request: Request,
    audit_entry: Option<OpenAuditEntry>,
    _permit: Option<AdmissionPermit>,
    _body_share: Option<OwnedSemaphorePermit>,
}

async fn admit(
    app: &App,
    policy: RoutePolicy,
    request_id: &str,
    request: Request,
) -> Result<AdmittedRequest, ApiError> {
    let (mut parts, body) = request.into_parts();
    extract_key(&mut parts.headers);
    let caller = authorize(app, policy, &parts).await?;
    let accepted = match described(app, &parts) {
        // The router answers 405. The request does nothing, so it is not audited.
        OperationLookup::MethodNotDocumented => None,
        // A documentation page, which ignores its query and body.
        OperationLookup::NotDocumented => Some(AcceptedInput { query: true, body: true }),
        OperationLookup::Operation(input) => Some(input),
    };
    let Some((accepted, max_body)) = accepted.zip(policy.max_body) else {
        let request = Request::from_parts(parts, body);
        return Ok(AdmittedRequest { request, audit_entry: None, _permit: None, _body_share: None });
    };
    if !accepted.query {
        QueryParams::ensure_empty(&parts.uri)?;
    }
    let (bytes, body_share) = match parts.method {
        // Their bodies have no meaning and are ignored.
        Method::GET | Method::HEAD => (Bytes::new(), None),
        _ => app.body_reader.read(&parts.headers, body, max_body).await?,
    };
    if !accepted.body {
        body::ensure_empty(&bytes)?;
    }
    let permit = app.admission.admit().await?;
    let audit_entry = match policy.audit.applies_to(&caller) {
        None => None,
        Some(filter) => {
            let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
            let action = AuditedAction {
                caller: &caller,
                action: format!("{} {route}", parts.method),
                uri: &parts.uri,
                body: filter.and_then(|accepts| std::str::from_utf8(&bytes).ok().filter(|text| accepts(text))),
                request_id,
            };
            // Without an audit entry the action must not happen.
            Some(OpenAuditEntry::open(&app.store, action).await?)
        }
    };
    parts.extensions.insert(caller);
    parts.extensions.insert(permit.clone());
    parts.extensions.insert(ReceivedBody(bytes));
    let request = Request::from_parts(parts, Body::empty());
    Ok(AdmittedRequest { request, audit_entry, _permit: Some(permit), _body_share: body_share })
}

fn described(app: &App, parts: &Parts) -> OperationLookup {
    let route = parts.extensions.get::<MatchedPath>();
    let known = app.document.get().zip(route);
    known.map_or(OperationLookup::NotDocumented, |(document, route)| {
        document.operations.find(&parts.method, route.as_str())
    })
}

// Authenticates the caller, and checks that the caller may use this route.
async fn authorize(app: &App, policy: RoutePolicy, parts: &Parts) -> Result<Principal, ApiError> {
    let caller = match &app.options.auth {
        Auth::Disabled => {
            host::require_local_host(&parts.headers, &parts.uri)?;
            return Ok(app.keyless_principal.clone());
        }
        Auth::InProcess(_) => return Ok(app.keyless_principal.clone()),
        Auth::Keys if policy.roles == AllowedRoles::Public => return Ok(app.keyless_principal.clone()),
        Auth::Keys => {
            let client = parts.extensions.get::<ClientAddr>().map(|client| client.0);
            app.authenticator.authenticate(&parts.headers, client, policy.store_use()).await?
        }
    };
    if !policy.roles.allow(caller.role()) {
        return Err(ApiError::new(Code::Forbidden, format!("the key's role, {}, does not allow this", caller.role())));
    }
    if !policy.tenant_keys && caller.tenant().is_some() {
        return Err(ApiError::new(Code::Forbidden, "a key that is bound to a tenant may not do this"));
    }
    Ok(caller)
}

/// The IP address of the client, as seen by the socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddr(pub(crate) IpAddr);
