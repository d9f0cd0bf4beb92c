//! `/admin/jobs`: lists and inspects jobs, and retries, cancels and reprioritizes them.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{
    ListResponse,
    admin::{
        attempt::LogLineView,
        explain::{Explanation, explain as explain_job},
        filter::{self, JobCriteria},
        job::{JobDetails, JobSummaryView},
        job_state::{self, JobStateView, PriorityRequest},
        page::{self, PageParams},
    },
    schema::{Id, JobStates},
};
use orchestrix_store::{PageRequest, StoreError};

use super::explain::gather_facts;
use crate::{
    App,
    api_error::ApiError,
    auth::principal::Principal,
    body::JsonBody,
    jobs::{cancel_job, parse_id},
    openapi::problems::{JobFinished, JobNotFound, NotRetryable},
    params::{PathParam, QueryParams},
};

/// Lists jobs, newest first.
#[utoipa::path(
    get,
    path = "/admin/jobs",
    tag = "admin",
    operation_id = "listJobs",
    params(
        (
            "state" = Option<JobStates>, Query,
            description = "Jobs in one of these states, separated by commas: `created`, `blocked`, `scheduled`, \
                `pending`, `dispatched`, `running`, `retrying`, `completed`, `dead`, `cancelled`.",
        ),
        JobCriteria,
        PageParams,
    ),
    responses((status = 200, description = "A page of jobs.", body = ListResponse<JobSummaryView>)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Principal,
    query: QueryParams,
) -> Result<Json<ListResponse<JobSummaryView>>, ApiError> {
    let (mut filter, page) = filter::parse_list(&query.0)?;
    caller.restrict(&mut filter)?;
    Ok(Json(ListResponse::from_page(app.store.list_jobs(&filter, &page).await?, JobSummaryView::from)))
}

/// Retrieves all details of a job.
#[utoipa::path(
    get,
    path = "/admin/jobs/{jobId}",
    tag = "admin",
    operation_id = "getJobDetails",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses(
        (status = 200, description = "The details of the job.", body = JobDetails),
        (status = 404, response = JobNotFound),
    ),
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<JobDetails>, ApiError> {
    let id = parse_id(&text)?;
    caller.require_job(&app, id).await?;
    let job = app.store.job(id).await?.ok_or(StoreError::JobNotFound(id))?;
    // Read after the job, so that the log of a finished job is complete.
    let logs = app.store.job_logs(id, &PageRequest::first(JobDetails::LOG_LINES)).await?;
    Ok(Json(JobDetails::new(job, logs)))
}

/// Explains why a job is not running, or how it finished.
#[utoipa::path(
    get,
    path = "/admin/jobs/{jobId}/explain",
    tag = "admin",
    operation_id = "explainJob",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses(
        (status = 200, description = "All reasons, the decisive one first.", body = Explanation),
        (status = 404, response = JobNotFound),
    ),
)]
pub(crate) async fn explain(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<Explanation>, ApiError> {
    let id = parse_id(&text)?;
    caller.require_job(&app, id).await?;
    // Uses the store's clock, and reads it first: a lease that is extended in between must not look expired.
    let now = app.store.now().await?;
    let job = app.store.job(id).await?.ok_or(StoreError::JobNotFound(id))?;
    let facts = gather_facts(&*app.store, &job, now).await?;
    Ok(Json(explain_job(&job, &facts)))
}

/// Lists the log lines of a job, oldest first.
#[utoipa::path(
    get,
    path = "/admin/jobs/{jobId}/logs",
    tag = "admin",
    operation_id = "listLogs",
    params(("jobId" = Id, Path, description = "The job's id."), PageParams),
    responses(
        (status = 200, description = "A page of log lines.", body = ListResponse<LogLineView>),
        (status = 404, response = JobNotFound),
    ),
)]
pub(crate) async fn list_logs(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    query: QueryParams,
) -> Result<Json<ListResponse<LogLineView>>, ApiError> {
    let page = page::parse_page(&query.0, |text| text.parse().ok())?;
    let id = parse_id(&text)?;
    caller.require_job(&app, id).await?;
    // Log lines may outlive their job. The log of a deleted job is a 404.
    app.store.job_summary(id).await?.ok_or(StoreError::JobNotFound(id))?;
    Ok(Json(ListResponse::from_page(app.store.job_logs(id, &page).await?, LogLineView::from)))
}

/// Retries a dead or cancelled job.
///
/// The job gets at least one more attempt.
#[utoipa::path(
    post,
    path = "/admin/jobs/{jobId}/retry",
    tag = "admin",
    operation_id = "retryJob",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses(
        (status = 200, description = "The state of the job.", body = JobStateView),
        (status = 404, response = JobNotFound),
        (status = 409, response = NotRetryable),
    ),
)]
pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<JobStateView>, ApiError> {
    let id = parse_id(&text)?;
    caller.require_job(&app, id).await?;
    let state = app.store.retry_job(id).await?;
    Ok(Json(JobStateView::new(id, state)))
}

/// Cancels a job.
///
/// A waiting job is cancelled at once. For a running job the server asks the worker to stop.
#[utoipa::path(
    post,
    path = "/admin/jobs/{jobId}/cancel",
    tag = "admin",
    operation_id = "cancelJobAsOperator",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses(
        (status = 202, description = "The job is cancelled, or its worker is asked to stop.", body = JobStateView),
        (status = 404, response = JobNotFound),
        (status = 409, response = JobFinished),
    ),
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<(StatusCode, Json<JobStateView>), ApiError> {
    let id = parse_id(&text)?;
    caller.require_job(&app, id).await?;
    Ok((StatusCode::ACCEPTED, Json(JobStateView::new(id, cancel_job(&app, id).await?))))
}

/// Changes the priority of an unfinished job.
#[utoipa::path(
    post,
    path = "/admin/jobs/{jobId}/priority",
    tag = "admin",
    operation_id = "setPriority",
    params(("jobId" = Id, Path, description = "The job's id.")),
    request_body = PriorityRequest,
    responses(
        (status = 200, description = "The state of the job.", body = JobStateView),
        (status = 404, response = JobNotFound),
        (status = 409, response = JobFinished),
    ),
)]
pub(crate) async fn set_priority(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<Json<JobStateView>, ApiError> {
    let priority = job_state::parse_priority(body.as_str()?)?;
    let id = parse_id(&text)?;
    caller.require_job(&app, id).await?;
    Ok(Json(JobStateView::new(id, app.store.reprioritize_job(id, priority).await?)))
}
