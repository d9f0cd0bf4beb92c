//! `POST /worker/leases/{leaseToken}/progress`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{job::Accepted, worker::read_progress};
use orchestrix_core::JobStatus;

use super::token;
use crate::{App, body::Text, params::Named, refusal::Refusal};

/// Records how far a running job has come.
pub(crate) async fn progress(
    State(app): State<Arc<App>>,
    Named(text): Named,
    body: Text,
) -> Result<Json<Accepted>, Refusal> {
    let update = read_progress(body.as_str()?)?;
    let token = token(&text)?;
    app.store.progress(token, update).await?;
    Ok(Json(Accepted { job_id: token.job, status: JobStatus::Running }))
}
