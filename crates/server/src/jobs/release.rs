//! `POST /jobs/{jobId}/release`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{job::Accepted, schema::Id};
use orchestrix_store::StoreError;

use super::id;
use crate::{
    App, answer,
    auth::caller::Caller,
    openapi::problems::{Finished, NoSuchJob},
    params::Named,
    refusal::Refusal,
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
    caller: Caller,
    Named(text): Named,
) -> Result<(StatusCode, Json<Accepted>), Refusal> {
    let id = id(&text)?;
    caller.owns(&app, id).await?;
    let state = match app.store.release_held_job(id).await {
        // It is what was wanted: an answer that got lost may have been the first one's.
        Err(StoreError::IllegalTransition(transition)) if !transition.from.is_terminal() => transition.from,
        answer => answer?,
    };
    Ok(answer::stands(id, state))
}
