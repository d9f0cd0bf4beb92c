//! `DELETE /schedules/{name}`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use orchestrix_api::schema::ScheduleId;
use orchestrix_store::StoreError;

use super::name;
use crate::{
    App, api_error::ApiError, auth::principal::Principal, openapi::problems::NoSuchSchedule, params::PathParam,
};

/// Forgets a schedule and its ledger. Jobs that it created stay.
#[utoipa::path(
    delete,
    path = "/schedules/{name}",
    tag = "schedules",
    operation_id = "deleteSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    responses((status = 204, description = "It is gone."), (status = 404, response = NoSuchSchedule)),
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<StatusCode, ApiError> {
    let name = name(&text)?;
    match app.store.delete_schedule(caller.tenant(), &name).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(StoreError::ScheduleNotFound(name).into()),
    }
}
