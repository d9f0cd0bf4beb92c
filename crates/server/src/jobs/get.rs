//! `GET /jobs/{jobId}`

use std::{sync::Arc, time::Duration};

use axum::{Extension, Json, extract::State};
use orchestrix_api::{
    Object,
    job::{self, JobView},
    schema::Id,
    worker::MAX_WAIT,
};
use orchestrix_core::FieldError;
use orchestrix_store::StoreError;

use super::id;
use crate::{
    App,
    admission::AdmissionPermit,
    api_error::ApiError,
    auth::principal::Principal,
    openapi::problems::NoSuchJob,
    params::{PathParam, QueryParams},
};

/// Shows a job, at once or when its status changes.
#[utoipa::path(
    get,
    path = "/jobs/{jobId}",
    tag = "jobs",
    operation_id = "getJob",
    params(
        ("jobId" = Id, Path, description = "The job's id."),
        (
            "waitSeconds" = Option<f64>, Query, minimum = 0, maximum = 60,
            description = "How many seconds to wait for its status to change from what it is.",
        ),
    ),
    responses((status = 200, description = "The job as it stands.", body = JobView), (status = 404, response = NoSuchJob)),
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    asked: QueryParams,
    Extension(permit): Extension<AdmissionPermit>,
) -> Result<Json<JobView>, ApiError> {
    let wait = read_wait(&asked)?;
    let id = id(&text)?;
    let mut job = app.reader.find(id).await?;
    if !caller.may_see(&job.tenant) {
        return Err(StoreError::JobNotFound(id).into());
    }
    if !wait.is_zero() && !job.state.is_terminal() {
        permit.release();
        if let Ok(_waits) = app.long_polls.try_acquire() {
            let seen = job.state.status();
            let mut watch = app.watcher.watch(id, seen);
            let over = tokio::time::sleep(wait);
            let ended = app.authenticator.revoked(&caller);
            tokio::pin!(over, ended);
            while job.state.status() == seen {
                let end = tokio::select! {
                    refusal = &mut ended => return Err(refusal),
                    () = watch.changed() => false,
                    () = &mut over => true,
                    () = app.shutdown_requested() => true,
                };
                job = app.reader.find(id).await?;
                if end {
                    break;
                }
            }
        }
    }
    Ok(Json(job.into()))
}

fn read_wait(asked: &QueryParams) -> Result<Duration, job::Refusal> {
    let mut object = Object::read(&asked.0)?;
    let wait = object.text("waitSeconds", |text| {
        let wait = text.parse().ok().and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
        let rule = || FieldError::new("", format!("must be a number of seconds from 0 to {}", MAX_WAIT.as_secs()));
        wait.filter(|wait| *wait <= MAX_WAIT).ok_or_else(rule)
    });
    object.end()?;
    Ok(wait.unwrap_or_default())
}
