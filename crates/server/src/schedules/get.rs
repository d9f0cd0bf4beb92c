//! `GET /schedules/{name}`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::schedule::ScheduleView;

use super::{name, show};
use crate::{App, params::Named, refusal::Refusal};

/// Shows a schedule.
pub(crate) async fn get(State(app): State<Arc<App>>, Named(text): Named) -> Result<Json<ScheduleView>, Refusal> {
    Ok(Json(show(&app, &name(&text)?).await?))
}
