//! `POST /worker/leave`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use orchestrix_api::worker::{Beat, HeartbeatRequest};

use crate::{App, api_error::ApiError, body::JsonBody};

/// Takes a worker off the list; what it holds it keeps until its leases end.
#[utoipa::path(
    post,
    path = "/worker/leave",
    tag = "workers",
    operation_id = "leaveWorker",
    request_body = HeartbeatRequest,
    responses((status = 204, description = "It is off the list.")),
)]
pub(crate) async fn leave(State(app): State<Arc<App>>, body: JsonBody) -> Result<StatusCode, ApiError> {
    let beat = Beat::read(body.as_str()?)?;
    app.store.remove_worker(&beat.worker, beat.presence.instance.as_ref()).await?;
    app.roster.remove(&beat.worker);
    Ok(StatusCode::NO_CONTENT)
}
