//! `POST /jobs`

use std::sync::Arc;

use axum::{extract::State, http::HeaderMap, response::Response};
use orchestrix_api::{
    Problem,
    job::{self, Accepted, JobRequest},
};
use orchestrix_core::{FieldError, IdempotencyKey, NewJob};

use crate::{
    App, api_error::ApiError, auth::principal::Principal, body::JsonBody, openapi::problems::InvalidOrReused, response,
};

/// Records a job. Answered once it is durable.
#[utoipa::path(
    post,
    path = "/jobs",
    tag = "jobs",
    operation_id = "createJob",
    params((
        "Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, pattern = "^[!-~]+$",
        description = "Instead of `idempotencyKey`; both must be the same.",
    )),
    request_body = JobRequest,
    responses(
        (
            status = 202, description = "The job is durable.", body = Accepted,
            headers(("Location" = String, description = "Where to look for the job."))
        ),
        (status = 422, response = InvalidOrReused),
    ),
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    caller: Principal,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let mut job = job::read(body.as_str()?, &caller.default_tenant())?;
    caller.require_tenant(&job.tenant)?;
    take_key(&headers, &mut job)?;
    job.traceparent = traceparent(&headers);
    let correlation_id = job.correlation_id.clone();
    let enqueued = app.store.enqueue_job(job).await?;
    // Ties what is known of the request to what will be known of the job.
    tracing::debug!(job_id = %enqueued.id, correlation_id, "recorded");
    Ok(response::created_job(enqueued.into()))
}

/// The header of an idempotency key.
pub(crate) const KEY: &str = "Idempotency-Key";

// The header may say what the field may say; both may say the same.
fn take_key(headers: &HeaderMap, job: &mut NewJob) -> Result<(), ApiError> {
    let mut values = headers.get_all(KEY).iter();
    let Some(value) = values.next() else { return Ok(()) };
    let refuse = |message: &str| ApiError::from(Problem::invalid(FieldError::new(KEY, message).into()));
    if values.any(|other| other != value) {
        return Err(refuse("is there twice, and not the same"));
    }
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| refuse("is not UTF-8"))?;
    let key = IdempotencyKey::new(text).map_err(|error| refuse(&error.message))?;
    match &job.idempotency_key {
        Some(other) if *other != key => Err(refuse("is not the idempotencyKey of the body")),
        _ => {
            job.idempotency_key = Some(key);
            Ok(())
        }
    }
}

/// The trace that the request belongs to, if it says so in a form that others can read.
pub(crate) fn traceparent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let nothing = |part: &str| part.bytes().all(|byte| byte == b'0');
    match parts[..] {
        [version, trace, span, flags, ..]
            if hex(version, 2)
                && version != "ff"
                && (version != "00" || parts.len() == 4)
                && hex(trace, 32)
                && hex(span, 16)
                && hex(flags, 2)
                && !nothing(trace)
                && !nothing(span)
                && text.len() <= 128 =>
        {
            Some(text.to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trace_that_others_can_read_is_taken() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", text.parse().unwrap());
            traceparent(&headers)
        };
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(read(good).as_deref(), Some(good));
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-extra",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
