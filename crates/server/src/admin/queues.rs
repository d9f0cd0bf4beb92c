//! `/admin/queues`: lists, shows, pauses and resumes queues.

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Code, ListResponse, Problem,
    admin::{
        page::{self, PageParams},
        queue::{self, QueueRequest, QueueView},
    },
    schema::Name,
};
use orchestrix_core::{FieldError, Invalid, Queue};

use crate::{
    App,
    api_error::ApiError,
    body::JsonBody,
    openapi::problems::QueueNotFound,
    params::{PathParam, QueryParams},
};

/// Lists queues that have jobs or are paused, ordered by name.
#[utoipa::path(
    get,
    path = "/admin/queues",
    tag = "admin",
    operation_id = "listQueues",
    params(PageParams),
    responses((status = 200, description = "A page of queues.", body = ListResponse<QueueView>)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    query: QueryParams,
) -> Result<Json<ListResponse<QueueView>>, ApiError> {
    let page = page::parse_page(&query.0, |text| Queue::new(text).ok())?;
    Ok(Json(ListResponse::from_page(app.store.queue_depths(&page).await?, QueueView::from)))
}

/// Retrieves a queue.
///
/// Every valid name is a queue, possibly an empty one.
#[utoipa::path(
    get,
    path = "/admin/queues/{name}",
    tag = "admin",
    operation_id = "getQueue",
    params(("name" = Name, Path, description = "The queue's name.")),
    responses((status = 200, description = "The queue.", body = QueueView), (status = 404, response = QueueNotFound)),
)]
pub(crate) async fn get(State(app): State<Arc<App>>, PathParam(text): PathParam) -> Result<Json<QueueView>, ApiError> {
    let name = Queue::new(&text).map_err(|_| ApiError::new(Code::NotFound, "this is not a valid queue name"))?;
    Ok(Json(view(&app, name).await?))
}

/// Pauses or resumes a queue.
///
/// Workers claim no jobs from a paused queue. Running jobs continue.
#[utoipa::path(
    put,
    path = "/admin/queues/{name}",
    tag = "admin",
    operation_id = "putQueue",
    params(("name" = Name, Path, description = "The queue's name.")),
    request_body = QueueRequest,
    responses((status = 200, description = "The queue.", body = QueueView)),
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<Json<QueueView>, ApiError> {
    let request = queue::parse_queue(body.as_str()?)?;
    let name =
        Queue::new(&text).map_err(|error| Problem::invalid(Invalid::from(FieldError::new("name", error.message))))?;
    match request.paused {
        true => app.store.pause_queue(&name).await?,
        false => app.store.resume_queue(&name).await?,
    }
    Ok(Json(view(&app, name).await?))
}

async fn view(app: &App, name: Queue) -> Result<QueueView, ApiError> {
    let depth = app.store.queue_depth(&name).await?;
    Ok(depth.map_or_else(|| QueueView::empty(name), QueueView::from))
}
