//! `POST /schedules/{name}/backfill`

use std::{collections::HashSet, sync::Arc};

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{
    schedule::{self, BackfillRequest, BackfillResponse, OccurrenceView},
    schema::ScheduleId,
};
use orchestrix_core::{
    Timestamp,
    schedule::{OccurrenceOutcome, Overlap},
};
use orchestrix_store::{Backfill, Occurrence, PageRequest, Schedule, StoreError};

use super::{find, parse_name, unfinished_jobs};
use crate::{
    App, api_error::ApiError, auth::principal::Principal, body::JsonBody, openapi::problems::ScheduleNotFound,
    params::PathParam,
};

/// Enqueues jobs for past times of a schedule.
///
/// Times that have already fired are skipped. With `dryRun`, returns the plan and enqueues nothing.
#[utoipa::path(
    post,
    path = "/schedules/{name}/backfill",
    tag = "schedules",
    operation_id = "backfillSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    request_body = BackfillRequest,
    responses(
        (status = 200, description = "The plan of a dry run.", body = BackfillResponse),
        (status = 202, description = "The jobs are durable.", body = BackfillResponse),
        (status = 404, response = ScheduleNotFound),
    ),
)]
pub(crate) async fn backfill(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<(StatusCode, Json<BackfillResponse>), ApiError> {
    let name = parse_name(&text)?;
    let (range, dry_run) = schedule::parse_backfill(body.as_str()?)?;
    let schedule = find(&app, &caller, &name).await?;
    let overlap = range.overlap.unwrap_or(schedule.definition.overlap);
    let planned = plan(&app, &caller, &schedule, &range, overlap).await?;
    let (status, fired, items) = match dry_run {
        true => {
            let fired = planned.iter().filter(|occurrence| occurrence.outcome == OccurrenceOutcome::Fired).count();
            let items = planned.iter().cloned().map(OccurrenceView::from).collect();
            (StatusCode::OK, fired, Some(items))
        }
        false => (StatusCode::ACCEPTED, app.store.backfill_schedule(caller.tenant(), &name, &range).await?, None),
    };
    let skipped = planned.len().saturating_sub(fired);
    Ok((status, Json(BackfillResponse { overlap, fired, skipped, dry_run, items })))
}

// Predicts the store's decision. The store decides again when it runs the backfill.
async fn plan(
    app: &App,
    caller: &Principal,
    schedule: &Schedule,
    range: &Backfill,
    overlap: Overlap,
) -> Result<Vec<Occurrence>, ApiError> {
    let now = Timestamp::now();
    let mut times = range.until_now(now).map_err(StoreError::from)?.times(schedule).map_err(StoreError::from)?;
    let fired = fired_times(app, caller, schedule, range).await?;
    times.retain(|time| !fired.contains(time));
    let unfinished = unfinished_jobs(app, schedule).await?;
    Ok(schedule.backfill(&times, overlap, &unfinished, now).lines)
}

// Reads at most twice as many occurrences as a range may have: manual triggers add some between the scheduled ones.
async fn fired_times(
    app: &App,
    caller: &Principal,
    schedule: &Schedule,
    range: &Backfill,
) -> Result<HashSet<Timestamp>, ApiError> {
    let max_pages = 2 * Backfill::MAX / PageRequest::<()>::MAX_LIMIT;
    let mut times = HashSet::new();
    let mut page = PageRequest::after(range.to, PageRequest::<()>::MAX_LIMIT);
    for _ in 0..max_pages {
        let occurrences = app.store.list_occurrences(caller.tenant(), &schedule.definition.name, &page).await?;
        let fired = occurrences.items.iter().filter(|occurrence| occurrence.outcome == OccurrenceOutcome::Fired);
        times.extend(fired.map(|occurrence| occurrence.nominal));
        match occurrences.next {
            Some(cursor) if cursor >= range.from => page.cursor = Some(cursor),
            _ => break,
        }
    }
    Ok(times)
}
