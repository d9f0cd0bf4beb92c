//! `GET /admin/nodes`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Listed,
    admin::{node::NodeView, page},
};
use orchestrix_core::NodeName;

use crate::{App, params::Params, refusal::Refusal};

/// Lists nodes by name, and says which of them leads.
pub(crate) async fn nodes(State(app): State<Arc<App>>, asked: Params) -> Result<Json<Listed<NodeView>>, Refusal> {
    let page = page::read(&asked.0, |text| NodeName::new(text).ok())?;
    Ok(Json(Listed::of(app.store.nodes(&page).await?, NodeView::from)))
}
