//! `POST /schedules/{name}/backfill`

use std::{collections::HashSet, sync::Arc};

use axum::{Json, extract::State, http::StatusCode};
use orchestrix_api::{
    schedule::{self, BackfillRequest, Backfilled, OccurrenceView},
    schema::ScheduleId,
};
use orchestrix_core::{
    Timestamp,
    schedule::{OccurrenceOutcome, Overlap},
};
use orchestrix_store::{Backfill, Occurrence, PageRequest, Schedule, StoreError};

use super::{find, name, unfinished};
use crate::{
    App, api_error::ApiError, auth::principal::Principal, body::JsonBody, openapi::problems::NoSuchSchedule,
    params::PathParam,
};

/// Creates jobs for times that have passed, or says which it would create.
#[utoipa::path(
    post,
    path = "/schedules/{name}/backfill",
    tag = "schedules",
    operation_id = "backfillSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    request_body = BackfillRequest,
    responses(
        (status = 200, description = "What would be done: nothing was.", body = Backfilled),
        (status = 202, description = "The jobs are durable.", body = Backfilled),
        (status = 404, response = NoSuchSchedule),
    ),
)]
pub(crate) async fn backfill(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<(StatusCode, Json<Backfilled>), ApiError> {
    let name = name(&text)?;
    let (range, dry_run) = schedule::read_backfill(body.as_str()?)?;
    let schedule = find(&app, &caller, &name).await?;
    let overlap = range.overlap.unwrap_or(schedule.definition.overlap);
    let planned = plan(&app, &caller, &schedule, &range, overlap).await?;
    let (status, fired, items) = match dry_run {
        true => {
            let fired = planned.iter().filter(|line| line.outcome == OccurrenceOutcome::Fired).count();
            let items = planned.iter().cloned().map(OccurrenceView::from).collect();
            (StatusCode::OK, fired, Some(items))
        }
        false => (StatusCode::ACCEPTED, app.store.backfill_schedule(caller.tenant(), &name, &range).await?, None),
    };
    let skipped = planned.len().saturating_sub(fired);
    Ok((status, Json(Backfilled { overlap, fired, skipped, dry_run, items })))
}

// What the store would decide now; it decides anew when it is asked to.
async fn plan(
    app: &App,
    caller: &Principal,
    schedule: &Schedule,
    range: &Backfill,
    overlap: Overlap,
) -> Result<Vec<Occurrence>, ApiError> {
    let now = Timestamp::now();
    let mut times = range.until_now(now).map_err(StoreError::from)?.times(schedule).map_err(StoreError::from)?;
    let fired = fired(app, caller, schedule, range).await?;
    times.retain(|time| !fired.contains(time));
    let unfinished = unfinished(app, schedule).await?;
    Ok(schedule.backfill(&times, overlap, &unfinished, now).lines)
}

// As many lines as a range may hold times, and as many again for what was done by hand in between.
async fn fired(
    app: &App,
    caller: &Principal,
    schedule: &Schedule,
    range: &Backfill,
) -> Result<HashSet<Timestamp>, ApiError> {
    let most = 2 * Backfill::MAX / PageRequest::<()>::MAX_LIMIT;
    let mut fired = HashSet::new();
    let mut page = PageRequest::after(range.to, PageRequest::<()>::MAX_LIMIT);
    for _ in 0..most {
        let found = app.store.list_occurrences(caller.tenant(), &schedule.definition.name, &page).await?;
        let lines = found.items.iter().filter(|line| line.outcome == OccurrenceOutcome::Fired);
        fired.extend(lines.map(|line| line.nominal));
        match found.next {
            Some(cursor) if cursor >= range.from => page.cursor = Some(cursor),
            _ => break,
        }
    }
    Ok(fired)
}
