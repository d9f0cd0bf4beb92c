//! Answers that are what was asked for.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use orchestrix_api::job::JobStatusView;
use orchestrix_core::JobId;

/// 202, with where to look for the job.
pub(crate) fn accepted(job: JobStatusView) -> Response {
    let place = HeaderValue::from_str(&format!("/jobs/{}", job.job_id));
    let mut response = (StatusCode::ACCEPTED, Json(job)).into_response();
    if let Ok(place) = place {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

/// The same without a place: it is the job that was named.
pub(crate) fn stands(job_id: JobId, state: orchestrix_core::JobState) -> (StatusCode, Json<JobStatusView>) {
    (StatusCode::ACCEPTED, Json(JobStatusView { job_id, status: state.status() }))
}
