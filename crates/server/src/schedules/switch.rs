//! `POST /schedules/{name}/pause` and `…/resume`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::schedule::{self, ScheduleView};

use super::{find, name};
use crate::{App, body::Text, params::Named, refusal::Refusal};

/// Keeps a schedule from firing until it is resumed.
pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    Named(text): Named,
    body: Text,
) -> Result<Json<ScheduleView>, Refusal> {
    let name = name(&text)?;
    let note = schedule::read_pause(body.as_str()?)?;
    app.store.pause_schedule(&name, note).await?;
    Ok(Json(ScheduleView::from(&find(&app, &name).await?)))
}

/// Lets it fire again, from now on.
pub(crate) async fn resume(State(app): State<Arc<App>>, Named(text): Named) -> Result<Json<ScheduleView>, Refusal> {
    let name = name(&text)?;
    app.store.resume_schedule(&name).await?;
    Ok(Json(ScheduleView::from(&find(&app, &name).await?)))
}
