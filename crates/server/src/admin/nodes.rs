//! `/admin/nodes`: lists nodes.

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    ListResponse,
    admin::{
        node::NodeView,
        page::{self, PageParams},
    },
};
use orchestrix_core::NodeName;

use crate::{App, api_error::ApiError, params::QueryParams};

/// Lists nodes and the leader among them, ordered by name.
#[utoipa::path(
    get,
    path = "/admin/nodes",
    tag = "admin",
    operation_id = "listNodes",
    params(PageParams),
    responses((status = 200, description = "A page of nodes.", body = ListResponse<NodeView>)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    query: QueryParams,
) -> Result<Json<ListResponse<NodeView>>, ApiError> {
    let page = page::parse_page(&query.0, |text| NodeName::new(text).ok())?;
    Ok(Json(ListResponse::from_page(app.store.list_nodes(&page).await?, NodeView::from)))
}
