//! `GET /admin/operations`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Listed,
    admin::{
        operation::OperationView,
        page::{self, PartRequest},
    },
};

use crate::{App, api_error::ApiError, auth::principal::Principal, params::QueryParams};

/// Lists operations on many jobs, the newest first.
#[utoipa::path(
    get,
    path = "/admin/operations",
    tag = "admin",
    operation_id = "listOperations",
    params(PartRequest),
    responses((status = 200, description = "Operations, the newest first.", body = Listed<OperationView>)),
)]
pub(crate) async fn operations(
    State(app): State<Arc<App>>,
    caller: Principal,
    asked: QueryParams,
) -> Result<Json<Listed<OperationView>>, ApiError> {
    let page = page::read(&asked.0, |text| text.parse().ok())?;
    let found = app.store.list_operations(caller.tenant(), &page).await?;
    Ok(Json(Listed::of(found, OperationView::from)))
}
