//! `POST /admin/jobs/{jobId}/retry`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::admin::standing::Standing;

use crate::{App, jobs::id, params::Named, refusal::Refusal};

/// Gives a dead or cancelled job another chance, with at least one attempt left.
pub(crate) async fn retry(State(app): State<Arc<App>>, Named(text): Named) -> Result<Json<Standing>, Refusal> {
    let id = id(&text)?;
    Ok(Json(Standing::of(id, app.store.retry(id).await?)))
}
