//! `GET /jobs/{jobId}`

use std::{sync::Arc, time::Duration};

use axum::{Extension, Json, extract::State};
use orchestrix_api::{Problem, job::JobView, schema::Id, worker::MAX_WAIT};
use orchestrix_core::{FieldError, Invalid};
use orchestrix_store::StoreError;
use serde::Deserialize;
use utoipa::IntoParams;

use super::id;
use crate::{
    App,
    auth::caller::Caller,
    gate::Turn,
    openapi::problems::NoSuchJob,
    params::{Asked, Named},
    refusal::Refusal,
};

/// What may stand behind the question mark.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct Wait {
    /// How many seconds to wait for its status to change from what it is.
    #[param(value_type = Option<f64>, minimum = 0, maximum = 60)]
    wait_seconds: Option<String>,
}

impl Wait {
    fn read(&self) -> Result<Duration, Refusal> {
        let Some(text) = &self.wait_seconds else { return Ok(Duration::ZERO) };
        let wait = text.parse().ok().and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
        wait.filter(|wait| *wait <= MAX_WAIT).ok_or_else(|| {
            let message = format!("must be a number of seconds, at most {}", MAX_WAIT.as_secs());
            Problem::invalid(Invalid::from(FieldError::new("waitSeconds", message))).into()
        })
    }
}

/// Shows a job, at once or when its status changes.
#[utoipa::path(
    get,
    path = "/jobs/{jobId}",
    tag = "jobs",
    operation_id = "getJob",
    params(("jobId" = Id, Path, description = "The job's id."), Wait),
    responses((status = 200, description = "The job as it stands.", body = JobView), (status = 404, response = NoSuchJob)),
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    caller: Caller,
    Named(text): Named,
    Asked(wait): Asked<Wait>,
    Extension(turn): Extension<Turn>,
) -> Result<Json<JobView>, Refusal> {
    let wait = wait.read()?;
    let id = id(&text)?;
    let mut job = app.reader.find(id).await?;
    if !caller.sees(&job.tenant) {
        return Err(StoreError::JobNotFound(id).into());
    }
    if !wait.is_zero() && !job.state.is_terminal() {
        turn.give_back();
        if let Ok(_waits) = app.waits.try_acquire() {
            let seen = job.state.status();
            let mut watch = app.watcher.watch(id, seen);
            let over = tokio::time::sleep(wait);
            let ended = app.keys.ended(&caller);
            tokio::pin!(over, ended);
            while job.state.status() == seen {
                let end = tokio::select! {
                    refusal = &mut ended => return Err(refusal),
                    () = watch.stirred() => false,
                    () = &mut over => true,
                    () = app.closed() => true,
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
