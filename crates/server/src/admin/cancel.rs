//! `POST /admin/jobs/{jobId}/cancel`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{admin::standing::Standing, schema::Id};

use crate::{
    App,
    auth::caller::Caller,
    jobs::{cancel::stop, id},
    openapi::problems::{Finished, NoSuchJob},
    params::Named,
    refusal::Refusal,
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
    caller: Caller,
    Named(text): Named,
) -> Result<(StatusCode, Json<Standing>), Refusal> {
    let id = id(&text)?;
    caller.owns(&app, id).await?;
    Ok((StatusCode::ACCEPTED, Json(Standing::of(id, stop(&app, id).await?))))
}
