//! `POST /jobs/{jobId}/release`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::job::Accepted;

use super::id;
use crate::{App, answer, params::Named, refusal::Refusal};

/// Lets a job go that was held.
pub(crate) async fn release(
    State(app): State<Arc<App>>,
    Named(text): Named,
) -> Result<(StatusCode, Json<Accepted>), Refusal> {
    let id = id(&text)?;
    Ok(answer::stands(id, app.store.release_hold(id).await?))
}
