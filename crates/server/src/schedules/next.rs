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
}

/// Shows the times that come, as if it were not paused.
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
