//! `GET /schedules/{name}/next`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Problem,
    schedule::{MAX_TIMES, Times},
};
use orchestrix_core::{FieldError, Invalid, Timestamp};
use serde::Deserialize;

use super::{find, name};
use crate::{
    App,
    params::{Asked, Named},
    refusal::Refusal,
};

/// What may stand behind the question mark.
#[derive(Debug, Deserialize)]
pub(crate) struct Ahead {
    count: Option<String>,
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
pub(crate) async fn next(
    State(app): State<Arc<App>>,
    Named(text): Named,
    Asked(ahead): Asked<Ahead>,
) -> Result<Json<Times>, Refusal> {
    let name = name(&text)?;
    let (count, after) = ahead.read().map_err(Problem::invalid)?;
    let schedule = find(&app, &name).await?;
    // What it has dealt with does not come again.
    let after = after.unwrap_or_else(|| schedule.counted_from.max(Timestamp::now()));
    Ok(Json(Times { times: schedule.definition.timing().upcoming(after, count) }))
}
