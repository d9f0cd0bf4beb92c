//! `POST /admin/dlq/redrive`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::admin::dlq::{self, Redrive, RedriveRequest, Redriven, RefusedJob};
use orchestrix_core::JobId;
use orchestrix_store::StoreError;

use crate::{App, body::Text, refusal::Refusal};

/// Gives dead jobs another chance: so many of those that match, or those that are named, each by itself.
#[utoipa::path(
    post,
    path = "/admin/dlq/redrive",
    tag = "admin",
    operation_id = "redriveDead",
    request_body = RedriveRequest,
    responses((status = 200, description = "What came of it.", body = Redriven)),
)]
pub(crate) async fn redrive(State(app): State<Arc<App>>, body: Text) -> Result<Json<Redriven>, Refusal> {
    match dlq::read_redrive(body.as_str()?)? {
        Redrive::Matching(filter, limit) => {
            let retried = app.store.retry_many(&filter, limit).await?;
            app.feed.stirred(&retried);
            let more = retried.len() >= limit;
            Ok(Json(Redriven { retried, refused: Vec::new(), more }))
        }
        Redrive::Named(ids) => named(&app, ids).await.map(Json),
    }
}

async fn named(app: &App, ids: Vec<JobId>) -> Result<Redriven, Refusal> {
    let mut redriven = Redriven { retried: Vec::new(), refused: Vec::new(), more: false };
    for job_id in ids {
        match app.store.retry(job_id).await {
            Ok(_) => {
                app.feed.stirred(&[job_id]);
                redriven.retried.push(job_id);
            }
            Err(error @ (StoreError::JobNotFound(_) | StoreError::IllegalTransition(_))) => {
                let problem = Refusal::from(error).0;
                redriven.refused.push(RefusedJob { job_id, code: problem.code, detail: problem.detail });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(redriven)
}
