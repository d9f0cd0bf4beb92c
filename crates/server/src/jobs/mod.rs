//! `/jobs`: enqueues jobs and shows, cancels and releases them.

pub(crate) mod traceparent;

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use orchestrix_api::{
    Code, ObjectReader, Problem, RequestError,
    job::{self, BatchRequest, BatchResponse, JobRequest, JobResultView, JobStatusView, JobView},
    schema::Id,
    worker::MAX_WAIT,
};
use orchestrix_core::{FieldError, IdempotencyKey, JobId, JobState, NewJob};
use orchestrix_store::{JobSummary, StoreError};
use serde_json::value::RawValue;

use crate::{
    App,
    admission::AdmissionPermit,
    api_error::ApiError,
    auth::principal::Principal,
    body::JsonBody,
    openapi::problems::{InvalidOrKeyReused, JobFinished, JobNotFound, NoResult},
    params::{PathParam, QueryParams},
    response,
};
use traceparent::traceparent;

/// The length of an id in its canonical form. Other forms are rejected, so that a job has one URL.
const ID_LENGTH: usize = 36;

/// The header with the idempotency key.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Parses the job id in a path. A malformed id gets the same 404 as an unknown one.
pub(crate) fn parse_id(text: &str) -> Result<JobId, ApiError> {
    let id = (text.len() == ID_LENGTH).then(|| text.parse().ok()).flatten();
    id.ok_or_else(|| ApiError::new(Code::JobNotFound, "there is no such job"))
}

/// Enqueues a job.
///
/// Responds once the job is durable. Send an idempotency key to make retries safe.
#[utoipa::path(
    post,
    path = "/jobs",
    tag = "jobs",
    operation_id = "createJob",
    params((
        "Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
        description = "The idempotency key, instead of `idempotencyKey`. If both are present, they must be equal.",
    )),
    request_body = JobRequest,
    responses(
        (
            status = 202, description = "The job is durable.", body = JobStatusView,
            headers(("Location" = String, description = "The URL of the job."))
        ),
        (status = 422, response = InvalidOrKeyReused),
    ),
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    caller: Principal,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let mut job = job::parse(body.as_str()?, &caller.default_tenant())?;
    caller.require_tenant(&job.tenant)?;
    apply_idempotency_header(&headers, &mut job)?;
    job.traceparent = traceparent(&headers);
    let correlation_id = job.correlation_id.clone();
    let enqueued = app.store.enqueue_job(job).await?;
    // Correlates the request's log lines with the job's.
    tracing::debug!(job_id = %enqueued.id, correlation_id, "job enqueued");
    Ok(response::created_job(enqueued.into()))
}

fn apply_idempotency_header(headers: &HeaderMap, job: &mut NewJob) -> Result<(), ApiError> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(()) };
    let reject = |message: &str| ApiError::from(Problem::invalid(FieldError::new(IDEMPOTENCY_KEY, message).into()));
    if values.any(|other| other != value) {
        return Err(reject("is present twice with different values"));
    }
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| reject("is not UTF-8"))?;
    let key = IdempotencyKey::new(text).map_err(|error| reject(&error.message))?;
    match &job.idempotency_key {
        Some(other) if *other != key => Err(reject("differs from the idempotencyKey of the body")),
        _ => {
            job.idempotency_key = Some(key);
            Ok(())
        }
    }
}

/// Enqueues a batch of jobs: all or none.
#[utoipa::path(
    post,
    path = "/jobs/batch",
    tag = "jobs",
    operation_id = "createJobs",
    request_body = BatchRequest,
    responses(
        (status = 202, description = "The jobs are durable, in the order of the request.", body = BatchResponse),
        (status = 422, response = InvalidOrKeyReused),
    ),
)]
pub(crate) async fn create_batch(
    State(app): State<Arc<App>>,
    caller: Principal,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<(StatusCode, Json<BatchResponse>), ApiError> {
    if headers.contains_key(IDEMPOTENCY_KEY) {
        let message = "is not allowed for a batch: set the idempotencyKey of each job";
        return Err(Problem::invalid(FieldError::new(IDEMPOTENCY_KEY, message).into()).into());
    }
    let default_tenant = caller.default_tenant();
    let mut jobs = body.read(move |text| job::parse_batch(text, &default_tenant)).await?;
    let traceparent = traceparent(&headers);
    for job in &mut jobs {
        caller.require_tenant(&job.tenant)?;
        job.traceparent.clone_from(&traceparent);
    }
    let jobs = app.store.enqueue_jobs(jobs).await?;
    Ok((StatusCode::ACCEPTED, Json(BatchResponse { jobs: jobs.into_iter().map(JobStatusView::from).collect() })))
}

/// Retrieves a job.
///
/// With `waitSeconds`, responds as soon as the status changes, or when the time is over.
#[utoipa::path(
    get,
    path = "/jobs/{jobId}",
    tag = "jobs",
    operation_id = "getJob",
    params(
        ("jobId" = Id, Path, description = "The job's id."),
        (
            "waitSeconds" = Option<f64>, Query, minimum = 0, maximum = 60,
            description = "How many seconds to wait for the status to change.",
        ),
    ),
    responses((status = 200, description = "The job.", body = JobView), (status = 404, response = JobNotFound)),
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    query: QueryParams,
    Extension(permit): Extension<AdmissionPermit>,
) -> Result<Json<JobView>, ApiError> {
    let wait = parse_wait(&query)?;
    let id = parse_id(&text)?;
    let mut job = app.reader.find(id).await?;
    if !caller.may_see(&job.tenant) {
        return Err(StoreError::JobNotFound(id).into());
    }
    if !wait.is_zero() && !job.state.is_terminal() {
        // A waiting request must not hold an admission permit.
        permit.release();
        if let Ok(_permit) = app.long_polls.try_acquire() {
            job = wait_for_change(&app, &caller, job, wait).await?;
        }
    }
    Ok(Json(job.into()))
}

// Returns the job once its status has changed, the wait is over or the server shuts down.
async fn wait_for_change(
    app: &App,
    caller: &Principal,
    job: JobSummary,
    wait: Duration,
) -> Result<JobSummary, ApiError> {
    let (id, status) = (job.id, job.state.status());
    let mut watch = app.watcher.watch(id, status);
    let timeout = tokio::time::sleep(wait);
    let key_revoked = app.authenticator.revoked(caller);
    tokio::pin!(timeout, key_revoked);
    loop {
        let is_last = tokio::select! {
            error = &mut key_revoked => return Err(error),
            () = watch.changed() => false,
            () = &mut timeout => true,
            () = app.shutdown_requested() => true,
        };
        let job = app.reader.find(id).await?;
        if is_last || job.state.status() != status {
            return Ok(job);
        }
    }
}

fn parse_wait(query: &QueryParams) -> Result<Duration, RequestError> {
    let mut object = ObjectReader::parse(&query.0)?;
    let wait = object.string("waitSeconds", |text| {
        let wait = text.parse().ok().and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
        let rule = || FieldError::new("", format!("must be a number of seconds from 0 to {}", MAX_WAIT.as_secs()));
        wait.filter(|wait| *wait <= MAX_WAIT).ok_or_else(rule)
    });
    object.finish()?;
    Ok(wait.unwrap_or_default())
}

/// Retrieves the result of a completed job.
#[utoipa::path(
    get,
    path = "/jobs/{jobId}/result",
    tag = "jobs",
    operation_id = "getResult",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses(
        (status = 200, description = "The result.", body = JobResultView),
        (status = 404, response = JobNotFound),
        (status = 409, response = NoResult),
    ),
)]
pub(crate) async fn result(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<JobResultView>, ApiError> {
    let id = parse_id(&text)?;
    caller.require_job(&app, id).await?;
    let job = app.store.job(id).await?.ok_or(StoreError::JobNotFound(id))?;
    match job.state {
        JobState::Completed => {
            let json = job.result.map(|json| RawValue::from_string(json.as_str().to_owned()));
            let json = json.transpose().map_err(|error| StoreError::Backend(Box::new(error)))?;
            Ok(Json(JobResultView { result: json.unwrap_or_else(|| RawValue::NULL.to_owned()) }))
        }
        JobState::Dead => Err(ApiError::new(Code::JobFailed, "the job failed and has no result")),
        JobState::Cancelled => Err(ApiError::new(Code::JobCancelled, "the job was cancelled and has no result")),
        _ => Err(ApiError::new(Code::NotFinished, "the job has not finished and has no result yet")),
    }
}

/// Cancels a job.
///
/// A waiting job is cancelled at once. For a running job the server asks the worker to stop.
/// Cancelling a cancelled job succeeds.
#[utoipa::path(
    post,
    path = "/jobs/{jobId}/cancel",
    tag = "jobs",
    operation_id = "cancelJob",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses(
        (status = 202, description = "The job is cancelled, or its worker is asked to stop.", body = JobStatusView),
        (status = 404, response = JobNotFound),
        (status = 409, response = JobFinished),
    ),
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<(StatusCode, Json<JobStatusView>), ApiError> {
    let id = parse_id(&text)?;
    caller.require_job(&app, id).await?;
    Ok(response::accepted(id, cancel_job(&app, id).await?))
}

/// Cancels a job. Succeeds if it is already cancelled.
pub(crate) async fn cancel_job(app: &App, id: JobId) -> Result<JobState, ApiError> {
    match app.store.cancel_job(id).await {
        Err(StoreError::IllegalTransition(transition)) if transition.from == JobState::Cancelled => Ok(transition.from),
        result => Ok(result?),
    }
}

/// Releases a held job.
///
/// Releasing a job that is no longer held succeeds.
#[utoipa::path(
    post,
    path = "/jobs/{jobId}/release",
    tag = "jobs",
    operation_id = "releaseJob",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses(
        (status = 202, description = "The job is released.", body = JobStatusView),
        (status = 404, response = JobNotFound),
        (status = 409, response = JobFinished),
    ),
)]
pub(crate) async fn release(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<(StatusCode, Json<JobStatusView>), ApiError> {
    let id = parse_id(&text)?;
    caller.require_job(&app, id).await?;
    let state = match app.store.release_held_job(id).await {
        // The client may retry a request whose response was lost.
        Err(StoreError::IllegalTransition(transition)) if !transition.from.is_terminal() => transition.from,
        result => result?,
    };
    Ok(response::accepted(id, state))
}
