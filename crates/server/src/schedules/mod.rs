//! `/schedules`: creates, shows and controls schedules.

pub(crate) mod backfill;

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode, response::Response};
use orchestrix_api::{
    Code, ListResponse, ObjectReader, Problem, RequestError,
    admin::page::{self, PageParams},
    job::JobStatusView,
    schedule::{
        self, MAX_UPCOMING_TIMES, OccurrenceView, PauseRequest, ScheduleRequest, ScheduleView, UpcomingTimesResponse,
    },
    schema::{ScheduleId, Time},
};
use orchestrix_core::{FieldError, Invalid, JobId, ScheduleName, Timestamp};
use orchestrix_store::{PutResult, Schedule, StoreError};

use crate::{
    App,
    api_error::ApiError,
    auth::principal::Principal,
    body::JsonBody,
    openapi::problems::ScheduleNotFound,
    params::{PathParam, QueryParams},
    response,
};

/// The default number of upcoming times.
const DEFAULT_UPCOMING_TIMES: usize = 10;

/// Lists schedules, ordered by name.
#[utoipa::path(
    get,
    path = "/schedules",
    tag = "schedules",
    operation_id = "listSchedules",
    params(PageParams),
    responses((status = 200, description = "A page of schedules.", body = ListResponse<ScheduleView>)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Principal,
    query: QueryParams,
) -> Result<Json<ListResponse<ScheduleView>>, ApiError> {
    let page = page::parse_page(&query.0, |text| ScheduleName::new(text).ok())?;
    let schedules = app.store.list_schedules(caller.tenant(), &page).await?;
    Ok(Json(ListResponse::from_page(schedules, |schedule| ScheduleView::from(&schedule))))
}

/// Creates or updates a schedule.
///
/// The name belongs to the tenant that created the schedule until the schedule is deleted.
/// For a key of another tenant the schedule does not exist (404).
/// A key without a tenant that names another tenant gets the name of the owner (422).
#[utoipa::path(
    put,
    path = "/schedules/{name}",
    tag = "schedules",
    operation_id = "putSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    request_body = ScheduleRequest,
    responses(
        (status = 200, description = "The updated schedule.", body = ScheduleView),
        (status = 201, description = "The created schedule.", body = ScheduleView),
        (status = 404, response = ScheduleNotFound),
    ),
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<(StatusCode, Json<ScheduleView>), ApiError> {
    let name = ScheduleName::new(&text)
        .map_err(|error| Problem::invalid(Invalid::from(FieldError::new("name", error.message))))?;
    let (schedule, resume) = schedule::parse(name.clone(), body.as_str()?, &caller.default_tenant())?;
    caller.require_tenant(&schedule.job.tenant)?;
    let put = app.store.put_schedule(caller.tenant(), schedule).await?;
    if resume {
        app.store.resume_schedule(caller.tenant(), &name).await?;
    }
    let status = if put == PutResult::Created { StatusCode::CREATED } else { StatusCode::OK };
    let mut schedule = view(&app, &caller, &name).await?;
    schedule.status.put = Some(schedule::put_result_name(put).into());
    Ok((status, Json(schedule)))
}

/// Retrieves a schedule.
#[utoipa::path(
    get,
    path = "/schedules/{name}",
    tag = "schedules",
    operation_id = "getSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    responses(
        (status = 200, description = "The schedule.", body = ScheduleView),
        (status = 404, response = ScheduleNotFound),
    ),
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<ScheduleView>, ApiError> {
    Ok(Json(view(&app, &caller, &parse_name(&text)?).await?))
}

/// Deletes a schedule and its occurrences.
///
/// Jobs that the schedule enqueued are not affected.
#[utoipa::path(
    delete,
    path = "/schedules/{name}",
    tag = "schedules",
    operation_id = "deleteSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    responses((status = 204, description = "The schedule is deleted."), (status = 404, response = ScheduleNotFound)),
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<StatusCode, ApiError> {
    let name = parse_name(&text)?;
    match app.store.delete_schedule(caller.tenant(), &name).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(StoreError::ScheduleNotFound(name).into()),
    }
}

/// Pauses a schedule.
///
/// A paused schedule does not fire until it is resumed.
#[utoipa::path(
    post,
    path = "/schedules/{name}/pause",
    tag = "schedules",
    operation_id = "pauseSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    request_body = Option<PauseRequest>,
    responses(
        (status = 200, description = "The schedule.", body = ScheduleView),
        (status = 404, response = ScheduleNotFound),
    ),
)]
pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    body: JsonBody,
) -> Result<Json<ScheduleView>, ApiError> {
    let name = parse_name(&text)?;
    let note = schedule::parse_pause(body.as_str()?)?;
    let changed = app.store.pause_schedule(caller.tenant(), &name, note).await?;
    changed_view(&app, &caller, &name, changed).await
}

/// Resumes a schedule.
///
/// The schedule fires again from now on.
#[utoipa::path(
    post,
    path = "/schedules/{name}/resume",
    tag = "schedules",
    operation_id = "resumeSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    responses(
        (status = 200, description = "The schedule.", body = ScheduleView),
        (status = 404, response = ScheduleNotFound),
    ),
)]
pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<ScheduleView>, ApiError> {
    let name = parse_name(&text)?;
    let changed = app.store.resume_schedule(caller.tenant(), &name).await?;
    changed_view(&app, &caller, &name, changed).await
}

/// Enqueues the job of a schedule now.
#[utoipa::path(
    post,
    path = "/schedules/{name}/trigger",
    tag = "schedules",
    operation_id = "triggerSchedule",
    params(("name" = ScheduleId, Path, description = "The schedule's name.")),
    responses(
        (
            status = 202, description = "The job is durable.", body = JobStatusView,
            headers(("Location" = String, description = "The URL of the job."))
        ),
        (status = 404, response = ScheduleNotFound),
    ),
)]
pub(crate) async fn trigger(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Response, ApiError> {
    let name = parse_name(&text)?;
    Ok(response::created_job(app.store.trigger_schedule(caller.tenant(), &name).await?.into()))
}

/// Lists the upcoming times of a schedule.
///
/// A paused schedule lists the times at which it would fire.
#[utoipa::path(
    get,
    path = "/schedules/{name}/next",
    tag = "schedules",
    operation_id = "nextTimes",
    params(
        ("name" = ScheduleId, Path, description = "The schedule's name."),
        (
            "count" = Option<u32>, Query, minimum = 1, maximum = 1000,
            description = "The number of times to return. Defaults to 10.",
        ),
        ("after" = Option<Time>, Query, description = "Lists the times after this time. Defaults to now."),
    ),
    responses(
        (status = 200, description = "The upcoming times.", body = UpcomingTimesResponse),
        (status = 404, response = ScheduleNotFound),
    ),
)]
pub(crate) async fn next_times(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    query: QueryParams,
) -> Result<Json<UpcomingTimesResponse>, ApiError> {
    let name = parse_name(&text)?;
    let (count, after) = parse_next_times(&query)?;
    let schedule = find(&app, &caller, &name).await?;
    // Times that the schedule has already processed do not fire again.
    let after = after.unwrap_or_else(|| schedule.counted_from.max(Timestamp::now()));
    Ok(Json(UpcomingTimesResponse { times: schedule.definition.timing().upcoming(after, count) }))
}

fn parse_next_times(query: &QueryParams) -> Result<(usize, Option<Timestamp>), RequestError> {
    let mut object = ObjectReader::parse(&query.0)?;
    let count = object.string("count", |text| {
        let count = text.parse().ok().filter(|count| (1..=MAX_UPCOMING_TIMES).contains(count));
        count.ok_or_else(|| FieldError::new("", format!("must be from 1 to {MAX_UPCOMING_TIMES}")))
    });
    let after = object.time("after");
    object.finish()?;
    Ok((count.unwrap_or(DEFAULT_UPCOMING_TIMES), after))
}

/// Lists the occurrences of a schedule, newest first.
#[utoipa::path(
    get,
    path = "/schedules/{name}/occurrences",
    tag = "schedules",
    operation_id = "listOccurrences",
    params(("name" = ScheduleId, Path, description = "The schedule's name."), PageParams),
    responses(
        (status = 200, description = "A page of occurrences.", body = ListResponse<OccurrenceView>),
        (status = 404, response = ScheduleNotFound),
    ),
)]
pub(crate) async fn list_occurrences(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    query: QueryParams,
) -> Result<Json<ListResponse<OccurrenceView>>, ApiError> {
    let name = parse_name(&text)?;
    let page = page::parse_page(&query.0, |text| text.parse().ok())?;
    let occurrences = app.store.list_occurrences(caller.tenant(), &name, &page).await?;
    Ok(Json(ListResponse::from_page(occurrences, OccurrenceView::from)))
}

/// Parses the name in a path. A malformed name gets the same 404 as an unknown one.
fn parse_name(text: &str) -> Result<ScheduleName, ApiError> {
    ScheduleName::new(text).map_err(|_| ApiError::new(Code::ScheduleNotFound, "there is no such schedule"))
}

async fn find(app: &App, caller: &Principal, name: &ScheduleName) -> Result<Schedule, ApiError> {
    let schedule = app.store.schedule(caller.tenant(), name).await?;
    Ok(schedule.ok_or_else(|| StoreError::ScheduleNotFound(name.clone()))?)
}

async fn view(app: &App, caller: &Principal, name: &ScheduleName) -> Result<ScheduleView, ApiError> {
    let schedule = find(app, caller, name).await?;
    let mut view = ScheduleView::from(&schedule);
    view.status.unfinished_jobs = unfinished_jobs(app, &schedule).await?;
    Ok(view)
}

async fn changed_view(
    app: &App,
    caller: &Principal,
    name: &ScheduleName,
    changed: bool,
) -> Result<Json<ScheduleView>, ApiError> {
    let mut schedule = view(app, caller, name).await?;
    schedule.status.changed = Some(changed);
    Ok(Json(schedule))
}

/// Returns the schedule's unfinished jobs, oldest first. The overlap policy depends on them.
async fn unfinished_jobs(app: &App, schedule: &Schedule) -> Result<Vec<JobId>, ApiError> {
    let states = app.store.job_states(&schedule.open_jobs).await?;
    let is_unfinished = |id: &&JobId| states.iter().any(|(job, state)| job == *id && !state.is_terminal());
    Ok(schedule.open_jobs.iter().filter(is_unfinished).copied().collect())
}
