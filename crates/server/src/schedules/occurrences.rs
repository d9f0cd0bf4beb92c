//! `GET /schedules/{name}/occurrences`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Listed,
    admin::page::{self, PartRequest},
    schedule::OccurrenceView,
    schema::ScheduleId,
};

use super::name;
use crate::{
    App,
    api_error::ApiError,
    auth::principal::Principal,
    openapi::problems::NoSuchSchedule,
    params::{PathParam, QueryParams},
};

/// Lists the ledger of a schedule, the newest first.
#[utoipa::path(
    get,
    path = "/schedules/{name}/occurrences",
    tag = "schedules",
    operation_id = "listOccurrences",
    params(("name" = ScheduleId, Path, description = "The schedule's name."), PartRequest),
    responses((status = 200, description = "Some of them.", body = Listed<OccurrenceView>), (status = 404, response = NoSuchSchedule)),
)]
pub(crate) async fn occurrences(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    asked: QueryParams,
) -> Result<Json<Listed<OccurrenceView>>, ApiError> {
    let name = name(&text)?;
    let page = page::read(&asked.0, |text| text.parse().ok())?;
    Ok(Json(Listed::of(app.store.list_occurrences(caller.tenant(), &name, &page).await?, OccurrenceView::from)))
}
