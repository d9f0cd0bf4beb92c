//! `POST /worker/register`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::worker::register::{self, RegisterRequest, Registered};

use super::Said;
use crate::{App, api_error::ApiError, body::JsonBody};

/// Makes a worker known as it starts. One that does not is made known by what it asks, and cannot be told from an earlier start of the same
/// name while that is not yet forgotten.
#[utoipa::path(
    post,
    path = "/worker/register",
    tag = "workers",
    operation_id = "registerWorker",
    request_body = RegisterRequest,
    responses((status = 200, description = "It is known.", body = Registered)),
)]
pub(crate) async fn register(State(app): State<Arc<App>>, body: JsonBody) -> Result<Json<Registered>, ApiError> {
    let info = register::read(body.as_str()?)?;
    let _alone = app.roster.alone().await;
    let directive = app.store.register_worker(&info).await?;
    app.roster.add(&info.name, Said::of(&info.queues, info.job_types.as_deref(), Some(info.concurrency)));
    Ok(Json(Registered { directive: directive.to_string() }))
}
