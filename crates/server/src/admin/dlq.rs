//! `GET /admin/dlq`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Listed,
    admin::{
        filter::{self, DeadRequest},
        job::JobItem,
        page::PartRequest,
    },
};

use crate::{App, api_error::ApiError, auth::principal::Principal, params::QueryParams};

/// Lists dead jobs that match, the newest first.
#[utoipa::path(
    get,
    path = "/admin/dlq",
    tag = "admin",
    operation_id = "listDead",
    params(DeadRequest, PartRequest),
    responses((status = 200, description = "Dead jobs, the newest first.", body = Listed<JobItem>)),
)]
pub(crate) async fn dlq(
    State(app): State<Arc<App>>,
    caller: Principal,
    asked: QueryParams,
) -> Result<Json<Listed<JobItem>>, ApiError> {
    let (mut filter, page) = filter::read_dead(&asked.0)?;
    caller.restrict(&mut filter)?;
    Ok(Json(Listed::of(app.store.list_jobs(&filter, &page).await?, JobItem::from)))
}
