//! What clients ask about schedules: one file for each request.

pub(crate) mod backfill;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod next;
pub(crate) mod occurrences;
pub(crate) mod put;
pub(crate) mod switch;
pub(crate) mod trigger;

use orchestrix_api::{Code, schedule::ScheduleView};
use orchestrix_core::{JobId, ScheduleName};
use orchestrix_store::{Schedule, StoreError};

use crate::{App, api_error::ApiError, auth::principal::Principal};

/// The name in a path. What is no name belongs to no schedule.
pub(crate) fn name(text: &str) -> Result<ScheduleName, ApiError> {
    ScheduleName::new(text).map_err(|_| ApiError::new(Code::ScheduleNotFound, "there is no such schedule"))
}

pub(crate) async fn find(app: &App, caller: &Principal, name: &ScheduleName) -> Result<Schedule, ApiError> {
    let found = app.store.schedule(caller.tenant(), name).await?;
    Ok(found.ok_or_else(|| StoreError::ScheduleNotFound(name.clone()))?)
}

/// A schedule with those of its jobs that are not over.
pub(crate) async fn show(app: &App, caller: &Principal, name: &ScheduleName) -> Result<ScheduleView, ApiError> {
    let schedule = find(app, caller, name).await?;
    let mut view = ScheduleView::from(&schedule);
    view.standing.unfinished_jobs = unfinished(app, &schedule).await?;
    Ok(view)
}

/// Those of its jobs that are not over, oldest first; overlaps are decided by them.
pub(crate) async fn unfinished(app: &App, schedule: &Schedule) -> Result<Vec<JobId>, ApiError> {
    let states = app.store.job_states(&schedule.open_jobs).await?;
    let open = |id: &&JobId| states.iter().any(|(known, state)| known == *id && !state.is_terminal());
    Ok(schedule.open_jobs.iter().filter(open).copied().collect())
}
