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

use crate::{App, auth::caller::Caller, params::Params, refusal::Refusal};

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
    caller: Caller,
    asked: Params,
) -> Result<Json<Listed<JobItem>>, Refusal> {
    let (mut filter, page) = filter::read_list(&asked.0)?;
    caller.keep(&mut filter)?;
    Ok(Json(Listed::of(app.store.list_jobs(&filter, &page).await?, JobItem::from)))
}
