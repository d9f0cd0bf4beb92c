//! `PUT /schedules/{name}`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{
    Problem,
    schedule::{self, ScheduleView},
};
use orchestrix_core::{FieldError, Invalid, ScheduleName};
use orchestrix_store::Put;

use super::show;
use crate::{
    App,
    body::{ONE, Text},
    params::Named,
    refusal::Refusal,
};

/// Sets a schedule up, or changes it.
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Named(text): Named,
    body: Text<ONE>,
) -> Result<(StatusCode, Json<ScheduleView>), Refusal> {
    let name = ScheduleName::new(&text)
        .map_err(|error| Problem::invalid(Invalid::from(FieldError::new("name", error.message))))?;
    let put = app.store.put_schedule(schedule::read(name.clone(), body.as_str()?)?).await?;
    let status = if put == Put::Created { StatusCode::CREATED } else { StatusCode::OK };
    let mut schedule = show(&app, &name).await?;
    schedule.standing.put = Some(schedule::put_word(put).into());
    Ok((status, Json(schedule)))
}
