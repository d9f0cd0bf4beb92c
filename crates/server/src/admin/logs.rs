//! `GET /admin/jobs/{jobId}/logs`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Listed,
    admin::{
        attempt::LineView,
        page::{self, PartRequest},
    },
    schema::Id,
};
use orchestrix_store::StoreError;

use crate::{
    App,
    api_error::ApiError,
    auth::principal::Principal,
    jobs::id,
    openapi::problems::NoSuchJob,
    params::{PathParam, QueryParams},
};

/// Lists the lines of a job's log, the oldest first.
#[utoipa::path(
    get,
    path = "/admin/jobs/{jobId}/logs",
    tag = "admin",
    operation_id = "listLogs",
    params(("jobId" = Id, Path, description = "The job's id."), PartRequest),
    responses((status = 200, description = "Lines, the oldest first.", body = Listed<LineView>), (status = 404, response = NoSuchJob)),
)]
pub(crate) async fn logs(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    asked: QueryParams,
) -> Result<Json<Listed<LineView>>, ApiError> {
    let page = page::read(&asked.0, |text| text.parse().ok())?;
    let id = id(&text)?;
    caller.require_job(&app, id).await?;
    // Lines may outlive their job, which is then as if it had never been.
    app.store.job_summary(id).await?.ok_or(StoreError::JobNotFound(id))?;
    Ok(Json(Listed::of(app.store.job_logs(id, &page).await?, LineView::from)))
}
