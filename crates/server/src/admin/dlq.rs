//! `/admin/dlq`: lists, redrives and purges dead jobs.

use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State};
use orchestrix_api::{
    Code, ListResponse,
    admin::{
        dlq::{self, PurgeRequest, PurgeResponse, Redrive, RedriveRequest, RedriveResponse, RefusedJob},
        filter::{self, JobCriteria},
        job::JobSummaryView,
        page::PageParams,
    },
};
use orchestrix_core::{JobId, JobState, Timestamp};
use orchestrix_store::{
    Fence, JobFilter, JobSummary, Page, PageRequest, Retention, Store, StoreError, housekeeping::MAX_SWEEP,
};

use crate::{App, api_error::ApiError, auth::principal::Principal, body::JsonBody, params::QueryParams};

/// The most pages of dead jobs that a dry run of a purge counts.
const MAX_COUNTED_PAGES: usize = 10;
/// A retention that keeps everything: longer than any store has existed.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Lists dead jobs, newest first.
#[utoipa::path(
    get,
    path = "/admin/dlq",
    tag = "admin",
    operation_id = "listDead",
    params(JobCriteria, PageParams),
    responses((status = 200, description = "A page of dead jobs.", body = ListResponse<JobSummaryView>)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Principal,
    query: QueryParams,
) -> Result<Json<ListResponse<JobSummaryView>>, ApiError> {
    let (mut filter, page) = filter::parse_dead_list(&query.0)?;
    caller.restrict(&mut filter)?;
    Ok(Json(ListResponse::from_page(app.store.list_jobs(&filter, &page).await?, JobSummaryView::from)))
}

/// Redrives dead jobs.
///
/// Redrives one page of the jobs that match a filter, one page of all dead jobs, or the jobs with the given ids.
/// To redrive every dead job, set `all` to true: an empty filter is rejected.
#[utoipa::path(
    post,
    path = "/admin/dlq/redrive",
    tag = "admin",
    operation_id = "redriveDead",
    request_body = RedriveRequest,
    responses((status = 200, description = "The redriven jobs.", body = RedriveResponse)),
)]
pub(crate) async fn redrive(
    State(app): State<Arc<App>>,
    caller: Principal,
    body: JsonBody,
) -> Result<Json<RedriveResponse>, ApiError> {
    match dlq::parse_redrive(body.as_str()?)? {
        Redrive::Matching(mut filter, page) => {
            caller.restrict(&mut filter)?;
            let Page { items: retried, next } = app.store.retry_jobs(&filter, &page).await?;
            let next_cursor = next.map(|id| id.to_string());
            Ok(Json(RedriveResponse { retried, refused: Vec::new(), more: next_cursor.is_some(), next_cursor }))
        }
        Redrive::Jobs(ids) => redrive_jobs(&app, &caller, ids).await.map(Json),
    }
}

async fn redrive_jobs(app: &App, caller: &Principal, ids: Vec<JobId>) -> Result<RedriveResponse, ApiError> {
    let mut response = RedriveResponse { retried: Vec::new(), refused: Vec::new(), more: false, next_cursor: None };
    for job_id in ids {
        match redrive_job(app, caller, job_id).await {
            Ok(()) => response.retried.push(job_id),
            Err(error) if matches!(error.problem.status, 404 | 409) => {
                let problem = error.problem;
                response.refused.push(RefusedJob { job_id, code: problem.code, detail: problem.detail });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(response)
}

async fn redrive_job(app: &App, caller: &Principal, id: JobId) -> Result<(), ApiError> {
    let job = app.reader.find(id).await?;
    if !caller.may_see(&job.tenant) {
        return Err(StoreError::JobNotFound(id).into());
    }
    // A cancelled job can be retried, but it is not in the dead letter queue: it was cancelled on purpose.
    if job.state != JobState::Dead {
        let code = if job.state.is_terminal() { Code::JobFinished } else { Code::NotFinished };
        return Err(ApiError::new(code, format!("the job is {}; only dead jobs can be redriven", job.state)));
    }
    app.store.retry_job(id).await?;
    Ok(())
}

/// Deletes dead jobs permanently.
///
/// One request deletes a bounded number of jobs. With `dryRun`, counts them and deletes nothing.
#[utoipa::path(
    post,
    path = "/admin/dlq/purge",
    tag = "admin",
    operation_id = "purgeDead",
    request_body = PurgeRequest,
    responses((status = 200, description = "The number of deleted or counted jobs.", body = PurgeResponse)),
)]
pub(crate) async fn purge(State(app): State<Arc<App>>, body: JsonBody) -> Result<Json<PurgeResponse>, ApiError> {
    let (older_than, dry_run) = dlq::parse_purge(body.as_str()?)?;
    if dry_run {
        return Ok(Json(count_dead(&*app.store, older_than).await?));
    }
    let retention = Retention {
        completed: FOREVER,
        cancelled: FOREVER,
        dead: older_than,
        logs: FOREVER,
        occurrences: FOREVER,
        audit: FOREVER,
        operations: FOREVER,
    };
    // An operator's purge is not fenced: it does not depend on leadership.
    let step = app.store.prune_history(Fence::NONE, &retention, MAX_SWEEP).await?;
    Ok(Json(PurgeResponse { count: step.count, more: step.more && step.count > 0 }))
}

async fn count_dead(store: &dyn Store, older_than: Duration) -> orchestrix_store::Result<PurgeResponse> {
    let filter = JobFilter { states: vec![JobState::Dead], ..JobFilter::default() };
    let now = Timestamp::now();
    let is_older = |job: &JobSummary| {
        let age = job.finished_at.map(|died_at| Duration::try_from(now.duration_since(died_at)).unwrap_or_default());
        older_than.is_zero() || age.is_some_and(|age| age >= older_than)
    };
    let mut count = 0;
    let mut page = PageRequest::first(PageRequest::<()>::MAX_LIMIT);
    for _ in 0..MAX_COUNTED_PAGES {
        let jobs = store.list_jobs(&filter, &page).await?;
        count += jobs.items.iter().filter(|job| is_older(job)).count();
        match jobs.next {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(PurgeResponse { count, more: false }),
        }
    }
    Ok(PurgeResponse { count, more: true })
}
