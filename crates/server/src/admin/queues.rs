//! `GET /admin/queues`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Listed,
    admin::{
        page::{self, PartRequest},
        queue::QueueView,
    },
};
use orchestrix_core::Queue;
use orchestrix_store::Page;

use crate::{App, api_error::ApiError, params::QueryParams};

/// Lists queues that hold jobs or are paused, by name.
#[utoipa::path(
    get,
    path = "/admin/queues",
    tag = "admin",
    operation_id = "listQueues",
    params(PartRequest),
    responses((status = 200, description = "Queues by name.", body = Listed<QueueView>)),
)]
pub(crate) async fn queues(
    State(app): State<Arc<App>>,
    asked: QueryParams,
) -> Result<Json<Listed<QueueView>>, ApiError> {
    let page = page::read(&asked.0, |text| Queue::new(text).ok())?;
    let Page { items, next } = app.store.queue_depths(&page).await?;
    let next_cursor = next.map(|queue| queue.to_string());
    Ok(Json(Listed { items: items.into_iter().map(QueueView::from).collect(), next_cursor }))
}
