//! `PUT /schedules/{name}`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{
    Problem,
    schedule::{self, ScheduleRequest, ScheduleView},
    schema::ScheduleId,
};
use orchestrix_core::{FieldError, Invalid, ScheduleName};
use orchestrix_store::PutResult;

use super::show;
use crate::{
    App, api_error::ApiError, auth::principal::Principal, body::JsonBody, openapi::problems::NoSuchSchedule,
    params::PathParam,
};

/// Sets a schedule up, or changes it.
///
/// A name belongs to the tenant that took it first, until the schedule is deleted: to a key of another it is not there, and whoever is bound
/// to none is told whose it is (422).
#[utoipa::path(
    put,
    path = "/schedules/{name}",
    tag = "schedules",
    operation_id = "putSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    request_body = ScheduleRequest,
    responses(
        (status = 200, description = "It was there, and is now as asked for.", body = ScheduleView),
        (status = 201, description = "It is new.", body = ScheduleView),
        (status = 404, response = NoSuchSchedule),
    ),
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<(StatusCode, Json<ScheduleView>), ApiError> {
    let name = ScheduleName::new(&text)
        .map_err(|error| Problem::invalid(Invalid::from(FieldError::new("name", error.message))))?;
    let (schedule, resume) = schedule::read(name.clone(), body.as_str()?, &caller.default_tenant())?;
    caller.require_tenant(&schedule.job.tenant)?;
    let put = app.store.put_schedule(caller.tenant(), schedule).await?;
    if resume {
        app.store.resume_schedule(caller.tenant(), &name).await?;
    }
    let status = if put == PutResult::Created { StatusCode::CREATED } else { StatusCode::OK };
    let mut schedule = show(&app, &caller, &name).await?;
    schedule.standing.put = Some(schedule::put_word(put).into());
    Ok((status, Json(schedule)))
}
