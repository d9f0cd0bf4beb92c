//! Progress and logs of running jobs: `/worker/leases/{leaseToken}/progress` and `…/logs`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    job::JobStatusView,
    schema::Token,
    worker::{LogsRequest, ProgressRequest, parse_logs, parse_progress},
};
use orchestrix_core::JobStatus;

use super::parse_token;
use crate::{App, api_error::ApiError, body::JsonBody, openapi::problems::LeaseLost, params::PathParam};

/// Reports the progress of a running job.
#[utoipa::path(
    post,
    path = "/worker/leases/{leaseToken}/progress",
    tag = "workers",
    operation_id = "reportProgress",
    params(("leaseToken" = Token, Path, description = "The token of the lease.")),
    request_body = ProgressRequest,
    responses(
        (status = 200, description = "The progress is stored.", body = JobStatusView),
        (status = 409, response = LeaseLost),
    ),
)]
pub(crate) async fn report(
    State(app): State<Arc<App>>,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<Json<JobStatusView>, ApiError> {
    let update = parse_progress(body.as_str()?)?;
    let token = parse_token(&text)?;
    app.store.record_progress(token, update).await?;
    Ok(Json(JobStatusView { job_id: token.job, status: JobStatus::Running }))
}

/// Appends lines to the log of a running job.
#[utoipa::path(
    post,
    path = "/worker/leases/{leaseToken}/logs",
    tag = "workers",
    operation_id = "appendLogs",
    params(("leaseToken" = Token, Path, description = "The token of the lease.")),
    request_body = LogsRequest,
    responses(
        (status = 200, description = "The lines are stored.", body = JobStatusView),
        (status = 409, response = LeaseLost),
    ),
)]
pub(crate) async fn append_logs(
    State(app): State<Arc<App>>,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<Json<JobStatusView>, ApiError> {
    let lines = parse_logs(body.as_str()?)?;
    let token = parse_token(&text)?;
    app.store.append_logs(token, lines).await?;
    Ok(Json(JobStatusView { job_id: token.job, status: JobStatus::Running }))
}
