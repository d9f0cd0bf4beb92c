//! `POST /schedules/{name}/backfill`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{
    schedule::{self, BackfillRequest, Backfilled},
    schema::ScheduleId,
};

use super::name;
use crate::{App, body::Text, openapi::problems::NoSuchSchedule, params::Named, refusal::Refusal};

/// Creates jobs for times that have passed.
#[utoipa::path(
    post,
    path = "/schedules/{name}/backfill",
    tag = "schedules",
    operation_id = "backfillSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    request_body = BackfillRequest,
    responses((status = 202, description = "The jobs are durable.", body = Backfilled), (status = 404, response = NoSuchSchedule)),
)]
pub(crate) async fn backfill(
    State(app): State<Arc<App>>,
    Named(text): Named,
    body: Text,
) -> Result<(StatusCode, Json<Backfilled>), Refusal> {
    let name = name(&text)?;
    let range = schedule::read_backfill(body.as_str()?)?;
    let fired = app.store.backfill_schedule(&name, &range).await?;
    Ok((StatusCode::ACCEPTED, Json(Backfilled { fired })))
}
