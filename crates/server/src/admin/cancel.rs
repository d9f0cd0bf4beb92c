//! `POST /admin/jobs/{jobId}/cancel`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::admin::standing::Standing;

use crate::{
    App,
    jobs::{cancel::stop, id},
    params::Named,
    refusal::Refusal,
};

/// Cancels a job that waits, and asks the owner of one that runs to stop.
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Named(text): Named,
) -> Result<(StatusCode, Json<Standing>), Refusal> {
    let id = id(&text)?;
    Ok((StatusCode::ACCEPTED, Json(Standing::of(id, stop(&app, id).await?))))
}
