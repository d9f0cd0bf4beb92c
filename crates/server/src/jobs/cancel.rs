//! `POST /jobs/{jobId}/cancel`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{job::Accepted, schema::Id};
use orchestrix_core::{JobId, JobState};
use orchestrix_store::StoreError;

use super::id;
use crate::{
    App, answer,
    auth::caller::Caller,
    openapi::problems::{Finished, NoSuchJob},
    params::Named,
    refusal::Refusal,
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
    caller: Caller,
    Named(text): Named,
) -> Result<(StatusCode, Json<Accepted>), Refusal> {
    let id = id(&text)?;
    caller.owns(&app, id).await?;
    Ok(answer::stands(id, stop(&app, id).await?))
}

/// Cancels a job, however often.
pub(crate) async fn stop(app: &App, id: JobId) -> Result<JobState, Refusal> {
    match app.store.cancel_job(id).await {
        // It is what was wanted.
        Err(StoreError::IllegalTransition(transition)) if transition.from == JobState::Cancelled => Ok(transition.from),
        answer => Ok(answer?),
    }
}
