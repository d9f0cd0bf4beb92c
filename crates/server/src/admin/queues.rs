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

use crate::{App, params::Params, refusal::Refusal};

/// Lists queues that hold jobs or are paused, by name.
#[utoipa::path(
    get,
    path = "/admin/queues",
    tag = "admin",
    operation_id = "listQueues",
    params(PartRequest),
    responses((status = 200, description = "Queues by name.", body = Listed<QueueView>)),
)]
pub(crate) async fn queues(State(app): State<Arc<App>>, asked: Params) -> Result<Json<Listed<QueueView>>, Refusal> {
    let page = page::read(&asked.0, |text| Queue::new(text).ok())?;
    // A store counts them all at once, at a cost that grows with the queues alone.
    let mut queues = app.store.depths().await?;
    queues.sort_unstable_by(|a, b| a.queue.cmp(&b.queue));
    queues.retain(|depth| page.cursor.as_ref().is_none_or(|cursor| depth.queue > *cursor));
    let more = queues.len() > page.limit;
    queues.truncate(page.limit);
    let next_cursor = queues.last().filter(|_| more).map(|depth| depth.queue.to_string());
    Ok(Json(Listed { items: queues.into_iter().map(QueueView::from).collect(), next_cursor }))
}
