//! `GET /admin/jobs/{jobId}`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{admin::job::JobDetails, schema::Id};
use orchestrix_store::{PageRequest, StoreError};

use crate::{
    App, api_error::ApiError, auth::principal::Principal, jobs::id, openapi::problems::NoSuchJob, params::PathParam,
};

/// Shows all of a job.
#[utoipa::path(
    get,
    path = "/admin/jobs/{jobId}",
    tag = "admin",
    operation_id = "getJobDetails",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses((status = 200, description = "All of the job.", body = JobDetails), (status = 404, response = NoSuchJob)),
)]
pub(crate) async fn job(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<JobDetails>, ApiError> {
    let id = id(&text)?;
    caller.require_job(&app, id).await?;
    let job = app.store.job(id).await?.ok_or(StoreError::JobNotFound(id))?;
    // After the job: what it wrote before it was over is then among them.
    let logs = app.store.job_logs(id, &PageRequest::first(JobDetails::LINES)).await?;
    Ok(Json(JobDetails::of(job, logs)))
}
