//! `POST /jobs/batch`

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use orchestrix_api::job::{self, Accepted, BatchAccepted};

use super::create::traceparent;
use crate::{App, body::Text, refusal::Refusal};

/// Records jobs, all or none.
pub(crate) async fn batch(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Text,
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
