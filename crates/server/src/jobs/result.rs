//! `GET /jobs/{jobId}/result`

use std::sync::Arc;

use axum::{Json, extract::State};
use orchestrix_api::{Code, job::ResultView, schema::Id};
use orchestrix_core::JobState;
use orchestrix_store::StoreError;
use serde_json::value::RawValue;

use super::id;
use crate::{
    App,
    api_error::ApiError,
    auth::principal::Principal,
    openapi::problems::{NoResult, NoSuchJob},
    params::PathParam,
};

/// Shows what a job left behind.
#[utoipa::path(
    get,
    path = "/jobs/{jobId}/result",
    tag = "jobs",
    operation_id = "getResult",
    params(("jobId" = Id, Path, description = "The job's id.")),
    responses(
        (status = 200, description = "The job is done.", body = ResultView),
        (status = 404, response = NoSuchJob),
        (status = 409, response = NoResult),
    ),
)]
pub(crate) async fn result(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
) -> Result<Json<ResultView>, ApiError> {
    let id = id(&text)?;
    caller.require_job(&app, id).await?;
    let job = app.store.job(id).await?.ok_or(StoreError::JobNotFound(id))?;
    match job.state {
        JobState::Completed => {
            // Checked when it was told.
            let json = job.result.map(|json| RawValue::from_string(json.as_str().to_owned()));
            let json = json.transpose().map_err(|error| StoreError::Backend(Box::new(error)))?;
            Ok(Json(ResultView { result: json.unwrap_or_else(|| RawValue::NULL.to_owned()) }))
        }
        JobState::Dead => Err(ApiError::new(Code::JobFailed, "it failed, so it has no result")),
        JobState::Cancelled => Err(ApiError::new(Code::JobCancelled, "it was cancelled, so it has no result")),
        _ => Err(ApiError::new(Code::NotFinished, "it has no result yet")),
    }
}
