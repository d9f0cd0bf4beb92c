//! `POST /admin/workers/{workerId}/drain`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{Code, admin::worker::Directed, schema::WorkerId};
use orchestrix_core::WorkerName;
use orchestrix_store::Directive;

use crate::{App, api_error::ApiError, openapi::problems::NoSuchWorker, params::PathParam};

/// Tells a worker to take nothing new and to end when what it runs is done.
#[utoipa::path(
    post,
    path = "/admin/workers/{workerId}/drain",
    tag = "admin",
    operation_id = "drainWorker",
    params(("workerId" = WorkerId, Path, description = "The worker's name.")),
    responses((status = 202, description = "It hears of it with its next heartbeat.", body = Directed), (status = 404, response = NoSuchWorker)),
)]
pub(crate) async fn drain(
    State(app): State<Arc<App>>,
    PathParam(text): PathParam,
) -> Result<(StatusCode, Json<Directed>), ApiError> {
    let unknown = || ApiError::new(Code::WorkerNotFound, "there is no such worker");
    let worker_id = WorkerName::new(&text).map_err(|_| unknown())?;
    if !app.store.direct_worker(&worker_id, Directive::Drain).await? {
        return Err(unknown());
    }
    Ok((StatusCode::ACCEPTED, Json(Directed { worker_id, directive: Directive::Drain.as_str().into() })))
}
