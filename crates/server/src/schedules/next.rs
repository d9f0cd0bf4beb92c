//! `GET /schedules/{name}/next`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Problem,
    schedule::{MAX_TIMES, Times},
    schema::{ScheduleId, Time},
};
use orchestrix_core::{FieldError, Invalid, Timestamp};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{find, name};
use crate::{
    App,
    auth::caller::Caller,
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
    /// After this time instead of now.
    #[param(value_type = Option<Time>)]
    after: Option<String>,
}

impl Ahead {
    fn read(&self) -> Result<(usize, Option<Timestamp>), Invalid> {
        let mut errors = Vec::new();
        let count = self.count.as_ref().map_or(Some(10), |text| text.parse().ok());
        let count = count.filter(|count| (1..=MAX_TIMES).contains(count));
        if count.is_none() {
            errors.push(FieldError::new("count", format!("must be from 1 to {MAX_TIMES}")));
        }
        let after = self.after.as_ref().map(|text| text.parse::<Timestamp>());
        if after.as_ref().is_some_and(Result::is_err) {
            errors.push(FieldError::new("after", "must be a time such as 2026-01-01T09:00:00Z"));
        }
        Invalid::check(errors)?;
        Ok((count.unwrap_or_default(), after.and_then(Result::ok)))
    }
}

/// Shows the times that come, or those after a given one, as if it were not paused.
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
    caller: Caller,
    Named(text): Named,
    Asked(ahead): Asked<Ahead>,
) -> Result<Json<Times>, Refusal> {
    let name = name(&text)?;
    let (count, after) = ahead.read().map_err(Problem::invalid)?;
    let schedule = find(&app, &caller, &name).await?;
    // What it has dealt with does not come again.
    let after = after.unwrap_or_else(|| schedule.counted_from.max(Timestamp::now()));
    Ok(Json(Times { times: schedule.definition.timing().upcoming(after, count) }))
}
