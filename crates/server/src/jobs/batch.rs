//! `POST /jobs/batch`

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use orchestrix_api::{
    Problem,
    job::{self, Accepted, BatchAccepted, BatchRequest},
};
use orchestrix_core::FieldError;

use super::create::{KEY, traceparent};
use crate::{App, api_error::ApiError, auth::principal::Principal, body::JsonBody, openapi::problems::InvalidOrReused};

/// Records jobs, all or none.
#[utoipa::path(
    post,
    path = "/jobs/batch",
    tag = "jobs",
    operation_id = "createJobs",
    request_body = BatchRequest,
    responses(
        (status = 202, description = "The jobs are durable; in the order of the request.", body = BatchAccepted),
        (status = 422, response = InvalidOrReused),
    ),
)]
pub(crate) async fn batch(
    State(app): State<Arc<App>>,
    caller: Principal,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<(StatusCode, Json<BatchAccepted>), ApiError> {
    if headers.contains_key(KEY) {
        let error = FieldError::new(KEY, "belongs to one job: each job of a batch has an idempotencyKey of its own");
        return Err(Problem::invalid(error.into()).into());
    }
    let home = caller.default_tenant();
    let mut jobs = body.read(move |text| job::read_batch(text, &home)).await?;
    let trace = traceparent(&headers);
    for job in &mut jobs {
        caller.require_tenant(&job.tenant)?;
        job.traceparent.clone_from(&trace);
    }
    let jobs = app.store.enqueue_jobs(jobs).await?;
    Ok((StatusCode::ACCEPTED, Json(BatchAccepted { jobs: jobs.into_iter().map(Accepted::from).collect() })))
}
