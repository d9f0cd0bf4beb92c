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

use orchestrix_api::{Code, Problem, schedule::ScheduleView};
use orchestrix_core::{FieldError, Invalid, JobId, ScheduleName};
use orchestrix_store::{PageRequest, Schedule, StoreError};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{App, auth::caller::Caller, refusal::Refusal};

/// The name in a path. What is no name belongs to no schedule.
pub(crate) fn name(text: &str) -> Result<ScheduleName, Refusal> {
    ScheduleName::new(text).map_err(|_| Refusal::new(Code::ScheduleNotFound, "there is no such schedule"))
}

pub(crate) async fn find(app: &App, caller: &Caller, name: &ScheduleName) -> Result<Schedule, Refusal> {
    let found = app.store.schedule(caller.tenant(), name).await?;
    Ok(found.ok_or_else(|| StoreError::ScheduleNotFound(name.clone()))?)
}

/// A schedule with those of its jobs that are not over.
pub(crate) async fn show(app: &App, caller: &Caller, name: &ScheduleName) -> Result<ScheduleView, Refusal> {
    let schedule = find(app, caller, name).await?;
    let mut view = ScheduleView::from(&schedule);
    view.standing.unfinished_jobs = unfinished(app, &schedule).await?;
    Ok(view)
}

/// Those of its jobs that are not over, oldest first; overlaps are decided by them.
pub(crate) async fn unfinished(app: &App, schedule: &Schedule) -> Result<Vec<JobId>, Refusal> {
    let states = app.store.states(&schedule.open_jobs).await?;
    let open = |id: &&JobId| states.iter().any(|(known, state)| known == *id && !state.is_terminal());
    Ok(schedule.open_jobs.iter().filter(open).copied().collect())
}

/// Which part of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// Where to go on: the `nextCursor` of the part before.
    #[param(min_length = 1)]
    cursor: Option<String>,
    /// How many at most; 100 unless told otherwise.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
}

impl Part {
    const LIMIT: usize = 100;

    /// The part, by a cursor of this kind.
    pub(crate) fn read<C>(&self, parse: impl Fn(&str) -> Option<C>) -> Result<PageRequest<C>, Refusal> {
        let bad = |field: &str, message: &str| {
            Refusal::from(Problem::invalid(Invalid::from(FieldError::new(field, message))))
        };
        let limit = match &self.limit {
            Some(text) => text.parse().map_err(|_| bad("limit", "must be a whole number"))?,
            None => Self::LIMIT,
        };
        let cursor = match &self.cursor {
            Some(text) => Some(parse(text).ok_or_else(|| bad("cursor", "is not one that was answered here"))?),
            None => None,
        };
        let page = PageRequest { cursor, limit };
        page.validate().map_err(|error| Problem::invalid(error.into()))?;
        Ok(page)
    }
}
