//! `POST /admin/jobs/{jobId}/retry`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{admin::standing::Standing, schema::Id};

use crate::{
    App,
    auth::caller::Caller,
    jobs::id,
    openapi::problems::{NoSuchJob, NotRetryable},
    params::Named,
    refusal::Refusal,
};

/// Gives a dead or cancelled job another chance, with at least one attempt left.
#[utoipa::path(
    post,
    path = "/admin/jobs/{jobId}/retry",
    tag = "admin",
    operation_id = "retryJob",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses((status = 200, description = "It waits for its turn.", body = Standing), (status = 404, response = NoSuchJob), (status = 409, response = NotRetryable)),
)]
pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    caller: Caller,
    Named(text): Named,
) -> Result<Json<Standing>, Refusal> {
    let id = id(&text)?;
    caller.owns(&app, id).await?;
    let state = app.store.retry_job(id).await?;
    Ok(Json(Standing::of(id, state)))
}
