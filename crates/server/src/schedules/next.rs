//! `GET /schedules/{name}/next`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Object, job,
    schedule::{MAX_TIMES, Times},
    schema::{ScheduleId, Time},
};
use orchestrix_core::{FieldError, Timestamp};

use super::{find, name};
use crate::{
    App,
    api_error::ApiError,
    auth::principal::Principal,
    openapi::problems::NoSuchSchedule,
    params::{PathParam, QueryParams},
};

/// Shows the times that come, or those after a given one, as if it were not paused.
#[utoipa::path(
    get,
    path = "/schedules/{name}/next",
    tag = "schedules",
    operation_id = "nextTimes",
    params(
        ("name" = ScheduleId, Path, description = "The schedule's name."),
        ("count" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "How many; 10 unless told otherwise."),
        ("after" = Option<Time>, Query, description = "After this time instead of now."),
    ),
    responses((status = 200, description = "The times.", body = Times), (status = 404, response = NoSuchSchedule)),
)]
pub(crate) async fn next(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    asked: QueryParams,
) -> Result<Json<Times>, ApiError> {
    let name = name(&text)?;
    let (count, after) = read(&asked)?;
    let schedule = find(&app, &caller, &name).await?;
    // What it has dealt with does not come again.
    let after = after.unwrap_or_else(|| schedule.counted_from.max(Timestamp::now()));
    Ok(Json(Times { times: schedule.definition.timing().upcoming(after, count) }))
}

// How many, and after when if not after now.
fn read(asked: &QueryParams) -> Result<(usize, Option<Timestamp>), job::Refusal> {
    let mut object = Object::read(&asked.0)?;
    let count = object.text("count", |text| {
        let count = text.parse().ok().filter(|count| (1..=MAX_TIMES).contains(count));
        count.ok_or_else(|| FieldError::new("", format!("must be from 1 to {MAX_TIMES}")))
    });
    let after = object.time("after");
    object.end()?;
    Ok((count.unwrap_or(10), after))
}
