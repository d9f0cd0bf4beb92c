//! `GET /admin/queues/{name}` and `PUT /admin/queues/{name}`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Code, Problem,
    admin::queue::{self, QueueRequest, QueueView},
    schema::Name,
};
use orchestrix_core::{FieldError, Invalid, Queue};

use crate::{App, api_error::ApiError, body::JsonBody, openapi::problems::NoSuchQueue, params::PathParam};

/// Shows a queue. Every name is one of a queue, if of an empty one.
#[utoipa::path(
    get,
    path = "/admin/queues/{name}",
    tag = "admin",
    operation_id = "getQueue",
    params(("name" = Name, Path, description = "The queue's name.")),
    responses((status = 200, description = "The queue.", body = QueueView), (status = 404, response = NoSuchQueue)),
)]
pub(crate) async fn get(State(app): State<Arc<App>>, PathParam(text): PathParam) -> Result<Json<QueueView>, ApiError> {
    let name = Queue::new(&text).map_err(|_| ApiError::new(Code::NotFound, "no queue can be called so"))?;
    Ok(Json(find(&app, name).await?))
}

/// Stops claims from a queue, or lets them go on.
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
    let request = queue::read(body.as_str()?)?;
    let name =
        Queue::new(&text).map_err(|error| Problem::invalid(Invalid::from(FieldError::new("name", error.message))))?;
    match request.paused {
        true => app.store.pause_queue(&name).await?,
        false => app.store.resume_queue(&name).await?,
    }
    Ok(Json(find(&app, name).await?))
}

async fn find(app: &App, name: Queue) -> Result<QueueView, ApiError> {
    let found = app.store.queue_depth(&name).await?;
    Ok(found.map_or_else(|| QueueView::empty(name), QueueView::from))
}
