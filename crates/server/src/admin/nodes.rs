//! `GET /admin/nodes`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Listed,
    admin::{
        node::NodeView,
        page::{self, PartRequest},
    },
};
use orchestrix_core::NodeName;

use crate::{App, api_error::ApiError, params::QueryParams};

/// Lists nodes by name, and says which of them leads.
#[utoipa::path(
    get,
    path = "/admin/nodes",
    tag = "admin",
    operation_id = "listNodes",
    params(PartRequest),
    responses((status = 200, description = "Nodes by name.", body = Listed<NodeView>)),
)]
pub(crate) async fn nodes(State(app): State<Arc<App>>, asked: QueryParams) -> Result<Json<Listed<NodeView>>, ApiError> {
    let page = page::read(&asked.0, |text| NodeName::new(text).ok())?;
    Ok(Json(Listed::of(app.store.list_nodes(&page).await?, NodeView::from)))
}
