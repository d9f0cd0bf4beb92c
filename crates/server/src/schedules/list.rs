//! `GET /schedules`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{Listed, schedule::ScheduleView};
use orchestrix_core::ScheduleName;

use super::Part;
use crate::{App, auth::caller::Caller, params::Asked, refusal::Refusal};

/// Lists schedules by name.
#[utoipa::path(
    get,
    path = "/schedules",
    tag = "schedules",
    operation_id = "listSchedules",
    params(Part),
    responses((status = 200, description = "Some of them.", body = Listed<ScheduleView>)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Asked(part): Asked<Part>,
) -> Result<Json<Listed<ScheduleView>>, Refusal> {
    let page = part.read(|text| ScheduleName::new(text).ok())?;
    let found = app.store.schedules(caller.tenant(), &page).await?;
    Ok(Json(Listed::of(found, |schedule| ScheduleView::from(&schedule))))
}
