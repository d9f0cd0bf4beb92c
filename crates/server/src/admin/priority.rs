//! `POST /admin/jobs/{jobId}/priority`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    admin::standing::{self, PriorityRequest, Standing},
    schema::Id,
};

use crate::{
    App,
    api_error::ApiError,
    auth::principal::Principal,
    body::JsonBody,
    jobs::id,
    openapi::problems::{Finished, NoSuchJob},
    params::PathParam,
};

/// Changes how urgent an unfinished job is.
#[utoipa::path(
    post,
    path = "/admin/jobs/{jobId}/priority",
    tag = "admin",
    operation_id = "setPriority",
    params(("jobId" = Id, Path, description = "The job's id.")),
    request_body = PriorityRequest,
    responses((status = 200, description = "It has this priority.", body = Standing), (status = 404, response = NoSuchJob), (status = 409, response = Finished)),
)]
pub(crate) async fn priority(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<Json<Standing>, ApiError> {
    let priority = standing::read_priority(body.as_str()?)?;
    let id = id(&text)?;
    caller.require_job(&app, id).await?;
    Ok(Json(Standing::of(id, app.store.reprioritize_job(id, priority).await?)))
}
