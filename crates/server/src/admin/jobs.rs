//! `GET /admin/jobs`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Listed,
    admin::{
        filter::{self, FilterRequest},
        job::JobItem,
        page::PartRequest,
    },
};

use crate::{App, api_error::ApiError, auth::principal::Principal, params::QueryParams};

/// Lists jobs that match, the newest first.
#[utoipa::path(
    get,
    path = "/admin/jobs",
    tag = "admin",
    operation_id = "listJobs",
    params(FilterRequest, PartRequest),
    responses((status = 200, description = "Jobs, the newest first.", body = Listed<JobItem>)),
)]
pub(crate) async fn jobs(
    State(app): State<Arc<App>>,
    caller: Principal,
    asked: QueryParams,
) -> Result<Json<Listed<JobItem>>, ApiError> {
    let (mut filter, page) = filter::read_list(&asked.0)?;
    caller.restrict(&mut filter)?;
    Ok(Json(Listed::of(app.store.list_jobs(&filter, &page).await?, JobItem::from)))
}
