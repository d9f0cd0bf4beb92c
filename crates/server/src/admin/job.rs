//! `GET /admin/jobs/{jobId}`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::admin::job::JobDetails;
use orchestrix_store::StoreError;

use crate::{App, jobs::id, params::Named, refusal::Refusal};

/// Shows all of a job.
pub(crate) async fn job(State(app): State<Arc<App>>, Named(text): Named) -> Result<Json<JobDetails>, Refusal> {
    let id = id(&text)?;
    let job = app.store.get(id).await?.ok_or(StoreError::JobNotFound(id))?;
    Ok(Json(JobDetails::from(job)))
}
