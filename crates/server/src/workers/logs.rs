//! `POST /worker/leases/{leaseToken}/logs`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{job::Accepted, worker::read_logs};
use orchestrix_core::JobStatus;

use super::token;
use crate::{App, body::Text, params::Named, refusal::Refusal};

/// Adds lines to the log of a running job.
pub(crate) async fn logs(
    State(app): State<Arc<App>>,
    Named(text): Named,
    body: Text,
) -> Result<Json<Accepted>, Refusal> {
    let lines = read_logs(body.as_str()?)?;
    let token = token(&text)?;
    app.store.append_logs(token, lines).await?;
    Ok(Json(Accepted { job_id: token.job, status: JobStatus::Running }))
}
