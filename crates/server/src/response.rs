//! Successful responses that several handlers share.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use orchestrix_api::job::JobStatusView;
use orchestrix_core::{JobId, JobState};

/// 202 for a new job, with its address in the `Location` header.
pub(crate) fn created_job(job: JobStatusView) -> Response {
    let location = HeaderValue::from_str(&format!("/jobs/{}", job.job_id));
    let mut response = (StatusCode::ACCEPTED, Json(job)).into_response();
    if let Ok(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// 202 for an existing job, with its new status.
pub(crate) fn accepted(job_id: JobId, state: JobState) -> (StatusCode, Json<JobStatusView>) {
    (StatusCode::ACCEPTED, Json(JobStatusView { job_id, status: state.status() }))
}
