//! `GET /schedules`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Listed,
    admin::page::{self, PartRequest},
    schedule::ScheduleView,
};
use orchestrix_core::ScheduleName;

use crate::{App, auth::caller::Caller, params::Params, refusal::Refusal};

/// Lists schedules by name.
#[utoipa::path(
    get,
    path = "/schedules",
    tag = "schedules",
    operation_id = "listSchedules",
    params(PartRequest),
    responses((status = 200, description = "Some of them.", body = Listed<ScheduleView>)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    asked: Params,
) -> Result<Json<Listed<ScheduleView>>, Refusal> {
    let page = page::read(&asked.0, |text| ScheduleName::new(text).ok())?;
    let found = app.store.list_schedules(caller.tenant(), &page).await?;
    Ok(Json(Listed::of(found, |schedule| ScheduleView::from(&schedule))))
}
