//! `GET /schedules/{name}/occurrences`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{Listed, schedule::OccurrenceView};

use super::{Part, find, name};
use crate::{
    App,
    params::{Asked, Named},
    refusal::Refusal,
};

/// Lists the ledger of a schedule, the newest first.
pub(crate) async fn occurrences(
    State(app): State<Arc<App>>,
    Named(text): Named,
    Asked(part): Asked<Part>,
) -> Result<Json<Listed<OccurrenceView>>, Refusal> {
    let name = name(&text)?;
    let page = part.read(|text| text.parse().ok())?;
    find(&app, &name).await?;
    Ok(Json(Listed::of(app.store.occurrences(&name, &page).await?, OccurrenceView::from)))
}
