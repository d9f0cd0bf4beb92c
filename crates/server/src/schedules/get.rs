//! `GET /schedules/{name}`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{schedule::ScheduleView, schema::ScheduleId};

use super::{name, show};
use crate::{
    App, api_error::ApiError, auth::principal::Principal, openapi::problems::NoSuchSchedule, params::PathParam,
};

/// Shows a schedule.
#[utoipa::path(
    get,
    path = "/schedules/{name}",
    tag = "schedules",
    operation_id = "getSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    responses((status = 200, description = "The schedule.", body = ScheduleView), (status = 404, response = NoSuchSchedule)),
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<ScheduleView>, ApiError> {
    Ok(Json(show(&app, &caller, &name(&text)?).await?))
}
