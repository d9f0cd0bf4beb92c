//! `POST /schedules/{name}/trigger`

use std::sync::Arc;

use axum::{extract::State, response::Response};
use orchestrix_api::{job::Accepted, schema::ScheduleId};

use super::name;
use crate::{App, answer, openapi::problems::NoSuchSchedule, params::Named, refusal::Refusal};

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
pub(crate) async fn trigger(State(app): State<Arc<App>>, Named(text): Named) -> Result<Response, Refusal> {
    Ok(answer::accepted(app.store.trigger_schedule(&name(&text)?).await?.into()))
}
