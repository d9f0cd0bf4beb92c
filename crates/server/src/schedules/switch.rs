//! `POST /schedules/{name}/pause` and `…/resume`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    schedule::{self, PauseRequest, ScheduleView},
    schema::ScheduleId,
};
use orchestrix_core::ScheduleName;

use super::{name, show};
use crate::{
    App, api_error::ApiError, auth::principal::Principal, body::JsonBody, openapi::problems::NoSuchSchedule,
    params::PathParam,
};

/// Keeps a schedule from firing until it is resumed.
#[utoipa::path(
    post,
    path = "/schedules/{name}/pause",
    tag = "schedules",
    operation_id = "pauseSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    request_body = Option<PauseRequest>,
    responses((status = 200, description = "The schedule.", body = ScheduleView), (status = 404, response = NoSuchSchedule)),
)]
pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<Json<ScheduleView>, ApiError> {
    let name = name(&text)?;
    let note = schedule::read_pause(body.as_str()?)?;
    let changed = app.store.pause_schedule(caller.tenant(), &name, note).await?;
    switched(&app, &caller, &name, changed).await
}

/// Lets it fire again, from now on.
#[utoipa::path(
    post,
    path = "/schedules/{name}/resume",
    tag = "schedules",
    operation_id = "resumeSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    responses((status = 200, description = "The schedule.", body = ScheduleView), (status = 404, response = NoSuchSchedule)),
)]
pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<ScheduleView>, ApiError> {
    let name = name(&text)?;
    let changed = app.store.resume_schedule(caller.tenant(), &name).await?;
    switched(&app, &caller, &name, changed).await
}

async fn switched(
    app: &App,
    caller: &Principal,
    name: &ScheduleName,
    changed: bool,
) -> Result<Json<ScheduleView>, ApiError> {
    let mut schedule = show(app, caller, name).await?;
    schedule.standing.changed = Some(changed);
    Ok(Json(schedule))
}
