//! `/worker/register`, `/worker/heartbeat` and `/worker/leave`

use std::{collections::HashMap, sync::Arc};

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::worker::{
    Heartbeat, HeartbeatRequest, HeartbeatResponse, LeaseStatusView, RegisterRequest, RegisterResponse,
    parse_registration,
};
use orchestrix_core::LeaseToken;
use orchestrix_store::{Directive, LeaseStatus, WorkerInfo};

use super::registration_cache::Fingerprint;
use crate::{App, api_error::ApiError, body::JsonBody};

/// Registers a worker at its start.
///
/// Registration is optional: a lease request or heartbeat registers an unknown worker.
/// Without registration, a restarted worker cannot be distinguished from its previous start of the same name.
#[utoipa::path(
    post,
    path = "/worker/register",
    tag = "workers",
    operation_id = "registerWorker",
    request_body = RegisterRequest,
    responses((status = 200, description = "The worker is registered.", body = RegisterResponse)),
)]
pub(crate) async fn register(State(app): State<Arc<App>>, body: JsonBody) -> Result<Json<RegisterResponse>, ApiError> {
    let info = parse_registration(body.as_str()?)?;
    let _guard = app.registrations.write_lock().await;
    let directive = app.store.register_worker(&info).await?;
    let fingerprint = Fingerprint::new(&info.queues, info.job_types.as_deref(), Some(info.concurrency));
    app.registrations.insert(&info.name, fingerprint);
    Ok(Json(RegisterResponse { directive: directive.to_string() }))
}

/// Sends a heartbeat and extends leases.
#[utoipa::path(
    post,
    path = "/worker/heartbeat",
    tag = "workers",
    operation_id = "heartbeat",
    request_body = HeartbeatRequest,
    responses((status = 200, description = "The status of each lease, and the directive.", body = HeartbeatResponse)),
)]
pub(crate) async fn heartbeat(
    State(app): State<Arc<App>>,
    body: JsonBody,
) -> Result<Json<HeartbeatResponse>, ApiError> {
    let heartbeat = Heartbeat::parse(body.as_str()?)?;
    let mut tokens: Vec<LeaseToken> = heartbeat.tokens.iter().filter_map(|(_, token)| *token).collect();
    tokens.sort_unstable();
    tokens.dedup();
    let extended = app.store.extend_leases(&tokens).await?;
    let statuses: HashMap<LeaseToken, LeaseStatus> = tokens.into_iter().zip(extended).collect();
    let directive = match app.store.heartbeat_worker(&heartbeat.worker, heartbeat.presence.clone()).await? {
        Some(directive) => directive,
        None => register_unknown(&app, &heartbeat).await?,
    };
    let view = |(text, token): (String, Option<LeaseToken>)| {
        let status = token.and_then(|token| statuses.get(&token).copied()).unwrap_or(LeaseStatus::Lost);
        LeaseStatusView::new(text, status)
    };
    let leases = heartbeat.tokens.into_iter().map(view).collect();
    Ok(Json(HeartbeatResponse { leases, directive: directive.to_string() }))
}

// Registers the worker for all queues and job types. Its next lease request corrects them.
async fn register_unknown(app: &App, heartbeat: &Heartbeat) -> Result<Directive, ApiError> {
    let _guard = app.registrations.write_lock().await;
    if let Some(directive) = app.store.heartbeat_worker(&heartbeat.worker, heartbeat.presence.clone()).await? {
        return Ok(directive);
    }
    let concurrency = heartbeat.slots.or(heartbeat.presence.free_slots).unwrap_or_default();
    let info = WorkerInfo { concurrency, ..WorkerInfo::any(heartbeat.worker.clone()) };
    let registered = app.store.register_worker(&info).await?;
    app.registrations.remove(&heartbeat.worker);
    // A registration carries no presence, so the heartbeat is repeated.
    let directive = app.store.heartbeat_worker(&heartbeat.worker, heartbeat.presence.clone()).await?;
    Ok(directive.unwrap_or(registered))
}

/// Removes a worker from the list of workers.
///
/// The worker keeps its leases until they expire.
#[utoipa::path(
    post,
    path = "/worker/leave",
    tag = "workers",
    operation_id = "leaveWorker",
    request_body = HeartbeatRequest,
    responses((status = 204, description = "The worker is removed.")),
)]
pub(crate) async fn leave(State(app): State<Arc<App>>, body: JsonBody) -> Result<StatusCode, ApiError> {
    let heartbeat = Heartbeat::parse(body.as_str()?)?;
    app.store.remove_worker(&heartbeat.worker, heartbeat.presence.instance.as_ref()).await?;
    app.registrations.remove(&heartbeat.worker);
    Ok(StatusCode::NO_CONTENT)
}
