//! `POST /admin/jobs/{jobId}/cancel`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{admin::standing::Standing, schema::Id};

use crate::{
    App,
    api_error::ApiError,
    auth::principal::Principal,
    jobs::{cancel::stop, id},
    openapi::problems::{Finished, NoSuchJob},
    params::PathParam,
};

/// Cancels a job that waits, and asks the owner of one that runs to stop.
#[utoipa::path(
    post,
    path = "/admin/jobs/{jobId}/cancel",
    tag = "admin",
    operation_id = "cancelJobAsOperator",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses((status = 202, description = "It is cancelled, or its worker is asked to stop.", body = Standing), (status = 404, response = NoSuchJob), (status = 409, response = Finished)),
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<(StatusCode, Json<Standing>), ApiError> {
    let id = id(&text)?;
    caller.require_job(&app, id).await?;
    Ok((StatusCode::ACCEPTED, Json(Standing::of(id, stop(&app, id).await?))))
}
