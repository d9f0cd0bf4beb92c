//! `GET /schedules/{name}/next`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Problem,
    schedule::{MAX_TIMES, Times},
    schema::ScheduleId,
};
use orchestrix_core::{FieldError, Invalid, Timestamp};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{find, name};
use crate::{
    App,
    openapi::problems::NoSuchSchedule,
    params::{Asked, Named},
    refusal::Refusal,
};

/// What may stand behind the question mark.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Ahead {
    /// How many; 10 unless told otherwise.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    count: Option<String>,
}

/// Shows the times that come, as if it were not paused.
#[utoipa::path(
    get,
    path = "/schedules/{name}/next",
    tag = "schedules",
    operation_id = "nextTimes",
    params(("name" = ScheduleId, Path, description = "The schedule's name."), Ahead),
    responses((status = 200, description = "The times.", body = Times), (status = 404, response = NoSuchSchedule)),
)]
pub(crate) async fn next(
    State(app): State<Arc<App>>,
    Named(text): Named,
    Asked(ahead): Asked<Ahead>,
) -> Result<Json<Times>, Refusal> {
    let name = name(&text)?;
    let count = ahead.count.map_or(Some(10), |text| text.parse().ok()).filter(|count| (1..=MAX_TIMES).contains(count));
    let count = count.ok_or_else(|| {
        let message = format!("must be from 1 to {MAX_TIMES}");
        Problem::invalid(Invalid::from(FieldError::new("count", message)))
    })?;
    let schedule = find(&app, &name).await?;
    Ok(Json(Times { times: schedule.definition.timing().upcoming(Timestamp::now(), count) }))
}
