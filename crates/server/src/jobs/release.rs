//! `POST /jobs/{jobId}/release`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{job::Accepted, schema::Id};
use orchestrix_store::StoreError;

use super::id;
use crate::{
    App,
    api_error::ApiError,
    auth::principal::Principal,
    openapi::problems::{Finished, NoSuchJob},
    params::PathParam,
    response,
};

/// Lets a job go that was held; one that is not held any more is answered alike.
#[utoipa::path(
    post,
    path = "/jobs/{jobId}/release",
    tag = "jobs",
    operation_id = "releaseJob",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses(
        (status = 202, description = "It waits for its turn.", body = Accepted),
        (status = 404, response = NoSuchJob),
        (status = 409, response = Finished),
    ),
)]
pub(crate) async fn release(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<(StatusCode, Json<Accepted>), ApiError> {
    let id = id(&text)?;
    caller.require_job(&app, id).await?;
    let state = match app.store.release_held_job(id).await {
        // It is what was wanted: an answer that got lost may have been the first one's.
        Err(StoreError::IllegalTransition(transition)) if !transition.from.is_terminal() => transition.from,
        answer => answer?,
    };
    Ok(response::accepted(id, state))
}
