//! `POST /schedules/{name}/trigger`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use orchestrix_api::{job::Accepted, schema::ScheduleId};

use super::name;
use crate::{
    App, api_error::ApiError, auth::principal::Principal, openapi::problems::NoSuchSchedule, params::PathParam,
    response,
};

/// Creates the job of a schedule now, whatever the time.
#[utoipa::path(
    post,
    path = "/schedules/{name}/trigger",
    tag = "schedules",
    operation_id = "triggerSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    responses(
        (
            status = 202, description = "The job is durable.", body = Accepted,
            headers(("Location" = String, description = "Where to look for the job."))
        ),
        (status = 404, response = NoSuchSchedule),
    ),
)]
pub(crate) async fn trigger(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Response, ApiError> {
    let name = name(&text)?;
    Ok(response::created_job(app.store.trigger_schedule(caller.tenant(), &name).await?.into()))
}
