//! `POST /worker/leases/{leaseToken}/progress`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    job::Accepted,
    schema::Token,
    worker::{ProgressRequest, read_progress},
};
use orchestrix_core::JobStatus;

use super::token;
use crate::{App, api_error::ApiError, body::JsonBody, openapi::problems::Lost, params::PathParam};

/// Records how far a running job has come.
#[utoipa::path(
    post,
    path = "/worker/leases/{leaseToken}/progress",
    tag = "workers",
    operation_id = "tellProgress",
    params(("leaseToken" = Token, Path, description = "The token that the lease came with.")),
    request_body = ProgressRequest,
    responses((status = 200, description = "It is recorded.", body = Accepted), (status = 409, response = Lost)),
)]
pub(crate) async fn progress(
    State(app): State<Arc<App>>,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<Json<Accepted>, ApiError> {
    let update = read_progress(body.as_str()?)?;
    let token = token(&text)?;
    app.store.record_progress(token, update).await?;
    Ok(Json(Accepted { job_id: token.job, status: JobStatus::Running }))
}
