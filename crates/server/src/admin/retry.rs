//! `POST /admin/jobs/{jobId}/retry`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{admin::standing::Standing, schema::Id};

use crate::{
    App,
    api_error::ApiError,
    auth::principal::Principal,
    jobs::id,
    openapi::problems::{NoSuchJob, NotRetryable},
    params::PathParam,
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
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<Standing>, ApiError> {
    let id = id(&text)?;
    caller.require_job(&app, id).await?;
    let state = app.store.retry_job(id).await?;
    Ok(Json(Standing::of(id, state)))
}
