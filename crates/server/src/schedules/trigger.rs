//! `POST /schedules/{name}/trigger`

use std::sync::Arc;

use axum::{extract::State, response::Response};

use super::name;
use crate::{App, answer, params::Named, refusal::Refusal};

/// Creates the job of a schedule now, whatever the time.
pub(crate) async fn trigger(State(app): State<Arc<App>>, Named(text): Named) -> Result<Response, Refusal> {
    Ok(answer::accepted(app.store.trigger_schedule(&name(&text)?).await?.into()))
}
