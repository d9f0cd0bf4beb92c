//! `POST /jobs/batch`

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use orchestrix_api::job::{self, Accepted, BatchAccepted, BatchRequest};

use super::create::traceparent;
use crate::{
    App,
    body::{MANY, Text},
    openapi::problems::InvalidOrReused,
    refusal::Refusal,
};

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
    headers: HeaderMap,
    body: Text<MANY>,
) -> Result<(StatusCode, Json<BatchAccepted>), Refusal> {
    let mut jobs = job::read_batch(body.as_str()?)?;
    drop(body);
    let trace = traceparent(&headers);
    for job in &mut jobs {
        job.traceparent.clone_from(&trace);
    }
    let jobs = app.store.enqueue_many(jobs).await?;
    Ok((StatusCode::ACCEPTED, Json(BatchAccepted { jobs: jobs.into_iter().map(Accepted::from).collect() })))
}
