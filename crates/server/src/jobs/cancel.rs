//! `POST /jobs/{jobId}/cancel`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{job::Accepted, schema::Id};
use orchestrix_core::{JobId, JobState};
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

/// Cancels a job that waits, and asks the owner of one that runs to stop.
#[utoipa::path(
    post,
    path = "/jobs/{jobId}/cancel",
    tag = "jobs",
    operation_id = "cancelJob",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses(
        (status = 202, description = "It is cancelled, or its worker is asked to stop.", body = Accepted),
        (status = 404, response = NoSuchJob),
        (status = 409, response = Finished),
    ),
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<(StatusCode, Json<Accepted>), ApiError> {
    let id = id(&text)?;
    caller.require_job(&app, id).await?;
    Ok(response::accepted(id, stop(&app, id).await?))
}

/// Cancels a job, however often.
pub(crate) async fn stop(app: &App, id: JobId) -> Result<JobState, ApiError> {
    match app.store.cancel_job(id).await {
        // It is what was wanted.
        Err(StoreError::IllegalTransition(transition)) if transition.from == JobState::Cancelled => Ok(transition.from),
        answer => Ok(answer?),
    }
}
