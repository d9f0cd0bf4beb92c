//! `POST /schedules/{name}/backfill`

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::schedule::{self, Backfilled};

use super::name;
use crate::{App, body::Text, params::Named, refusal::Refusal};

/// Creates jobs for times that have passed.
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
