//! `POST /worker/leave`

use std::sync::Arc;

use axum::{extract::State, http::StatusCode};
use orchestrix_api::worker::Beat;

use crate::{App, body::Text, refusal::Refusal};

/// Takes a worker off the list; what it holds it keeps until its leases end.
pub(crate) async fn leave(State(app): State<Arc<App>>, body: Text) -> Result<StatusCode, Refusal> {
    let beat = Beat::read(body.as_str()?)?;
    app.store.remove_worker(&beat.worker).await?;
    app.roster.remove(&beat.worker);
    Ok(StatusCode::NO_CONTENT)
}
