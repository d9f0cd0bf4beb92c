//! `GET /schedules/{name}`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{schedule::ScheduleView, schema::ScheduleId};

use super::{name, show};
use crate::{App, auth::caller::Caller, openapi::problems::NoSuchSchedule, params::Named, refusal::Refusal};

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
    caller: Caller,
    Named(text): Named,
) -> Result<Json<ScheduleView>, Refusal> {
    Ok(Json(show(&app, &caller, &name(&text)?).await?))
}
