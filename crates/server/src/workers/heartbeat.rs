//! `POST /worker/heartbeat`

use std::{collections::HashMap, sync::Arc};

use axum::{Json, extract::State};
use orchestrix_api::worker::{Beat, HeartbeatAnswer, HeartbeatRequest, LeaseState};
use orchestrix_core::LeaseToken;
use orchestrix_store::{Directive, LeaseStatus, WorkerInfo};

use crate::{App, api_error::ApiError, body::JsonBody};

/// Extends leases, and shows that the worker lives.
#[utoipa::path(
    post,
    path = "/worker/heartbeat",
    tag = "workers",
    operation_id = "heartbeat",
    request_body = HeartbeatRequest,
    responses((status = 200, description = "What became of the leases.", body = HeartbeatAnswer)),
)]
pub(crate) async fn heartbeat(State(app): State<Arc<App>>, body: JsonBody) -> Result<Json<HeartbeatAnswer>, ApiError> {
    let beat = Beat::read(body.as_str()?)?;
    let mut tokens: Vec<LeaseToken> = beat.tokens.iter().filter_map(|(_, token)| *token).collect();
    tokens.sort_unstable();
    tokens.dedup();
    let answers = app.store.extend_leases(&tokens).await?;
    let held: HashMap<LeaseToken, LeaseStatus> = tokens.into_iter().zip(answers).collect();
    let directive = match app.store.heartbeat_worker(&beat.worker, beat.presence.clone()).await? {
        Some(directive) => directive,
        None => make_known(&app, &beat).await?,
    };
    let state = |(text, token): (String, Option<LeaseToken>)| {
        let status = token.and_then(|token| held.get(&token).copied()).unwrap_or(LeaseStatus::Lost);
        LeaseState::new(text, status)
    };
    let leases = beat.tokens.into_iter().map(state).collect();
    Ok(Json(HeartbeatAnswer { leases, directive: directive.to_string() }))
}

// What it serves is told when it next asks for jobs.
async fn make_known(app: &App, beat: &Beat) -> Result<Directive, ApiError> {
    let _alone = app.roster.alone().await;
    if let Some(directive) = app.store.heartbeat_worker(&beat.worker, beat.presence.clone()).await? {
        return Ok(directive);
    }
    let concurrency = beat.slots.or(beat.presence.free_slots).unwrap_or_default();
    let info = WorkerInfo { concurrency, ..WorkerInfo::any(beat.worker.clone()) };
    let registered = app.store.register_worker(&info).await?;
    app.roster.remove(&beat.worker);
    // What it shows of itself, which a worker that is new does not say.
    Ok(app.store.heartbeat_worker(&beat.worker, beat.presence.clone()).await?.unwrap_or(registered))
}
