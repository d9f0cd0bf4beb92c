//! `GET /admin/jobs/{jobId}/explain`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    admin::explain::{Explanation, Facts, Reach, facts},
    schema::Id,
};
use orchestrix_core::{Job, Timestamp};
use orchestrix_store::{PageRequest, Result, Store, StoreError};

use crate::{
    App, api_error::ApiError, auth::principal::Principal, jobs::id, openapi::problems::NoSuchJob, params::PathParam,
};

/// Pages of workers that are looked at.
const MAX_PAGES: usize = 10;

/// Says why a job is not running, or what became of it.
#[utoipa::path(
    get,
    path = "/admin/jobs/{jobId}/explain",
    tag = "admin",
    operation_id = "explainJob",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses(
        (status = 200, description = "All reasons, the one that decides first.", body = Explanation),
        (status = 404, response = NoSuchJob),
    ),
)]
pub(crate) async fn explain(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> std::result::Result<Json<Explanation>, ApiError> {
    let id = id(&text)?;
    caller.require_job(&app, id).await?;
    // By the clock that its times are told by, and read first: a lease that is renewed in between is not called lost.
    let now = app.store.now().await?;
    let job = app.store.job(id).await?.ok_or(StoreError::JobNotFound(id))?;
    let facts = gather(&*app.store, &job, now).await?;
    Ok(Json(orchestrix_api::admin::explain::explain(&job, &facts)))
}

/// Reads what the job's state asks for, and no more.
async fn gather(store: &dyn Store, job: &Job, now: Timestamp) -> Result<Facts> {
    let mut facts = Facts::none(now);
    if facts::asks_for_parents(job) {
        facts.parents = store.job_states(&job.depends_on).await?;
    }
    if facts::asks_for_workers(job) {
        facts.paused = store.paused_queues().await?.contains(&job.queue);
        facts.reach = reach(store, job).await?;
    }
    if facts::asks_for_leader(job, now) {
        facts.leader = store.leader().await?.is_some();
    }
    Ok(facts)
}

/// How close workers come to the job; nothing if there are more of them than are looked at, and one of the others may take it.
async fn reach(store: &dyn Store, job: &Job) -> Result<Option<Reach>> {
    let mut closest = Reach::Nobody;
    let mut page = PageRequest::first(PageRequest::<()>::MAX_LIMIT);
    for _ in 0..MAX_PAGES {
        let found = store.list_workers(&page).await?;
        let reaches = found.items.iter().map(|worker| Reach::of(worker, &job.queue, &job.job_type));
        closest = reaches.fold(closest, Ord::max);
        match found.next {
            Some(cursor) if closest < Reach::Free => page.cursor = Some(cursor),
            _ => return Ok(Some(closest)),
        }
    }
    Ok(None)
}
