//! `POST /admin/dlq/redrive`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{
    Code,
    admin::dlq::{self, Redrive, RedriveRequest, Redriven, RefusedJob},
};
use orchestrix_core::{JobId, JobState};
use orchestrix_store::{Page, StoreError};

use crate::{App, api_error::ApiError, auth::principal::Principal, body::JsonBody};

/// Gives dead jobs another chance: so many of those that match, a step at a time, or those that are named, each by itself.
#[utoipa::path(
    post,
    path = "/admin/dlq/redrive",
    tag = "admin",
    operation_id = "redriveDead",
    request_body = RedriveRequest,
    responses((status = 200, description = "What came of it.", body = Redriven)),
)]
pub(crate) async fn redrive(
    State(app): State<Arc<App>>,
    caller: Principal,
    body: JsonBody,
) -> Result<Json<Redriven>, ApiError> {
    match dlq::read_redrive(body.as_str()?)? {
        Redrive::Matching(mut filter, page) => {
            caller.restrict(&mut filter)?;
            let Page { items: retried, next } = app.store.retry_jobs(&filter, &page).await?;
            let next_cursor = next.map(|id| id.to_string());
            Ok(Json(Redriven { retried, refused: Vec::new(), more: next_cursor.is_some(), next_cursor }))
        }
        Redrive::Named(ids) => named(&app, &caller, ids).await.map(Json),
    }
}

async fn named(app: &App, caller: &Principal, ids: Vec<JobId>) -> Result<Redriven, ApiError> {
    let mut redriven = Redriven { retried: Vec::new(), refused: Vec::new(), more: false, next_cursor: None };
    for job_id in ids {
        match retry(app, caller, job_id).await {
            Ok(()) => redriven.retried.push(job_id),
            Err(refusal) if matches!(refusal.problem.status, 404 | 409) => {
                let problem = refusal.problem;
                redriven.refused.push(RefusedJob { job_id, code: problem.code, detail: problem.detail });
            }
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(redriven)
}

async fn retry(app: &App, caller: &Principal, id: JobId) -> Result<(), ApiError> {
    let job = app.reader.find(id).await?;
    if !caller.may_see(&job.tenant) {
        return Err(StoreError::JobNotFound(id).into());
    }
    // A cancelled job could be retried, but is no dead letter: somebody gave it up.
    if job.state != JobState::Dead {
        let code = if job.state.is_terminal() { Code::JobFinished } else { Code::NotFinished };
        return Err(ApiError::new(code, format!("it is {}; only dead jobs are redriven", job.state)));
    }
    app.store.retry_job(id).await?;
    Ok(())
}
