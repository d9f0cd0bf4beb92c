//! `GET /schedules`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Listed,
    admin::page::{self, PartRequest},
    schedule::ScheduleView,
};
use orchestrix_core::ScheduleName;

use crate::{App, api_error::ApiError, auth::principal::Principal, params::QueryParams};

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
    caller: Principal,
    asked: QueryParams,
) -> Result<Json<Listed<ScheduleView>>, ApiError> {
    let page = page::read(&asked.0, |text| ScheduleName::new(text).ok())?;
    let found = app.store.list_schedules(caller.tenant(), &page).await?;
    Ok(Json(Listed::of(found, |schedule| ScheduleView::from(&schedule))))
}
