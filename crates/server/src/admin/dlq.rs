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

use crate::{App, auth::caller::Caller, params::Params, refusal::Refusal};

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
    caller: Caller,
    asked: Params,
) -> Result<Json<Listed<JobItem>>, Refusal> {
    let (mut filter, page) = filter::read_dead(&asked.0)?;
    caller.keep(&mut filter)?;
    Ok(Json(Listed::of(app.store.list_jobs(&filter, &page).await?, JobItem::from)))
}
