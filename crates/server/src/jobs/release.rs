//! `POST /jobs/{jobId}/release`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{job::Accepted, schema::Id};

use super::id;
use crate::{
    App, answer,
    openapi::problems::{NoSuchJob, NotHeldOrFinished},
    params::Named,
    refusal::Refusal,
};

/// Lets a job go that was held.
#[utoipa::path(
    post,
    path = "/jobs/{jobId}/release",
    tag = "jobs",
    operation_id = "releaseJob",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses(
        (status = 202, description = "It waits for its turn.", body = Accepted),
        (status = 404, response = NoSuchJob),
        (status = 409, response = NotHeldOrFinished),
    ),
)]
pub(crate) async fn release(
    State(app): State<Arc<App>>,
    Named(text): Named,
) -> Result<(StatusCode, Json<Accepted>), Refusal> {
    let id = id(&text)?;
    Ok(answer::stands(id, app.store.release_hold(id).await?))
}
