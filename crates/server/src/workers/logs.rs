//! `POST /worker/leases/{leaseToken}/logs`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    job::Accepted,
    schema::Token,
    worker::{LogsRequest, read_logs},
};
use orchestrix_core::JobStatus;

use super::token;
use crate::{App, api_error::ApiError, body::JsonBody, openapi::problems::Lost, params::PathParam};

/// Adds lines to the log of a running job.
#[utoipa::path(
    post,
    path = "/worker/leases/{leaseToken}/logs",
    tag = "workers",
    operation_id = "appendLogs",
    params(("leaseToken" = Token, Path, description = "The token that the lease came with.")),
    request_body = LogsRequest,
    responses((status = 200, description = "They are recorded.", body = Accepted), (status = 409, response = Lost)),
)]
pub(crate) async fn logs(
    State(app): State<Arc<App>>,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<Json<Accepted>, ApiError> {
    let lines = read_logs(body.as_str()?)?;
    let token = token(&text)?;
    app.store.append_logs(token, lines).await?;
    Ok(Json(Accepted { job_id: token.job, status: JobStatus::Running }))
}
