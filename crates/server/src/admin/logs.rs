//! `GET /admin/jobs/{jobId}/logs`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Listed,
    admin::{attempt::LineView, page},
};
use orchestrix_store::StoreError;

use crate::{
    App,
    jobs::id,
    params::{Named, Params},
    refusal::Refusal,
};

/// Lists the lines of a job's log, the oldest first.
pub(crate) async fn logs(
    State(app): State<Arc<App>>,
    Named(text): Named,
    asked: Params,
) -> Result<Json<Listed<LineView>>, Refusal> {
    let page = page::read(&asked.0, |text| text.parse().ok())?;
    let id = id(&text)?;
    // Lines may outlive their job, which is then as if it had never been.
    app.store.summary(id).await?.ok_or(StoreError::JobNotFound(id))?;
    Ok(Json(Listed::of(app.store.logs(id, &page).await?, LineView::from)))
}
