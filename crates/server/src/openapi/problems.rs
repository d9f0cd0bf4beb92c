//! Error responses of the OpenAPI document: one for each set of codes that share a status.

use axum::http::StatusCode;
use orchestrix_api::Code;
use serde_json::{Map, Value, json};
use utoipa::{
    ToResponse,
    openapi::{RefOr, Response, ResponseBuilder},
};

macro_rules! problems {
    ($($(#[doc = $doc:literal])+ $name:ident = [$($code:ident),+];)+) => {
        $(
            $(#[doc = $doc])+
            pub(crate) struct $name;

            // `responses` fills in the content, because the builder does not support constants.
            impl<'r> ToResponse<'r> for $name {
                fn response() -> (&'r str, RefOr<Response>) {
                    (stringify!($name), ResponseBuilder::new().build().into())
                }
            }
        )+

        const ALL: &[(&str, &[&str], &[Code])] =
            &[$((stringify!($name), &[$($doc),+], &[$(Code::$code),+])),+];
    };
}

problems! {
    /// The request is malformed.
    Malformed = [MalformedRequest];
    /// The body, or a payload, result or checkpoint in it, exceeds its size limit.
    TooLarge = [PayloadTooLarge];
    /// The content type of the body is not JSON.
    UnsupportedMediaType = [UnsupportedMediaType];
    /// One or more fields are invalid. `errors` lists them all.
    Invalid = [ValidationFailed];
    /// One or more fields are invalid, or the idempotency key was used for a different request.
    /// In that case `jobId` is the job of that request.
    InvalidOrKeyReused = [ValidationFailed, IdempotencyKeyReused];
    /// The API key is missing, unknown, expired or revoked.
    Unauthenticated = [Unauthenticated];
    /// The API key does not permit this request, or the request names another tenant.
    /// On a server without keys: the `Host` is not the server's address, or the `Origin` is another site.
    Forbidden = [Forbidden];
    /// This server does not provide metrics.
    NoMetrics = [NotFound];
    /// The job does not exist.
    JobNotFound = [JobNotFound];
    /// The API key does not exist.
    KeyNotFound = [KeyNotFound];
    /// The schedule does not exist.
    ScheduleNotFound = [ScheduleNotFound];
    /// The operation does not exist.
    OperationNotFound = [OperationNotFound];
    /// The worker does not exist.
    WorkerNotFound = [WorkerNotFound];
    /// The limit of concurrent operations is reached. Wait for one to finish, or abort one.
    TooManyOperations = [TooManyOperations];
    /// The job has no result: it has not finished, it failed, or it was cancelled.
    NoResult = [NotFinished, JobFailed, JobCancelled];
    /// The job has finished.
    JobFinished = [JobFinished];
    /// The job completed or has not finished. Only dead and cancelled jobs can be retried.
    NotRetryable = [JobFinished, NotFinished];
    /// The name is not a valid queue name.
    QueueNotFound = [NotFound];
    /// The name is not a valid tenant name, or the API key is bound to another tenant.
    TenantNotFound = [NotFound];
    /// The lease token no longer owns the job. Nothing was changed.
    LeaseLost = [LeaseLost];
    /// Too many requests. Retry after the delay in `Retry-After`.
    RateLimited = [RateLimited];
    /// An internal error. The server log has the details.
    InternalError = [Internal];
    /// The database is unavailable. Retry after the delay in `Retry-After`.
    Unavailable = [Unavailable];
}

/// All error responses, for `components.responses`.
pub(super) fn responses() -> Map<String, Value> {
    ALL.iter().map(|(name, doc, codes)| ((*name).to_owned(), response(doc, codes))).collect()
}

fn response(doc: &[&str], codes: &[Code]) -> Value {
    let text = doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let status = codes[0].status();
    let names: Vec<String> = codes.iter().map(|code| code.as_str()).collect();
    let constraints = json!({
        "type": "object",
        "properties": {"status": {"const": status}, "code": {"enum": names}},
    });
    let mut response = json!({
        "description": text,
        "content": {
            "application/problem+json": {"schema": {"allOf": [{"$ref": "#/components/schemas/Problem"}, constraints]}},
        },
    });
    if matches!(status, 429 | 503) {
        response["headers"] = json!({"Retry-After": {"$ref": "#/components/headers/Retry-After"}});
    }
    response
}

/// Properties of an operation that determine its common error responses.
#[derive(Clone, Copy)]
pub(super) struct CommonErrors {
    pub(super) needs_key: bool,
    /// Whether the middleware parses the request and admits it. False for requests about the server itself.
    pub(super) admitted: bool,
    pub(super) may_have_body: bool,
}

/// The error responses that follow from the middleware rather than from the handler.
pub(super) fn common(operation: CommonErrors) -> Vec<(StatusCode, &'static str)> {
    let mut responses = vec![(StatusCode::FORBIDDEN, "Forbidden")];
    if operation.needs_key {
        responses.push((StatusCode::UNAUTHORIZED, "Unauthenticated"));
    }
    // The middleware reads every body. An operation without a documented body accepts an empty object only.
    if operation.may_have_body {
        responses.push((StatusCode::PAYLOAD_TOO_LARGE, "TooLarge"));
        responses.push((StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType"));
    }
    if operation.admitted {
        // The middleware also rejects undocumented query parameters.
        responses.push((StatusCode::BAD_REQUEST, "Malformed"));
        responses.push((StatusCode::UNPROCESSABLE_ENTITY, "Invalid"));
    }
    // The key lookup or the handler uses the store.
    if operation.needs_key || operation.admitted {
        responses.push((StatusCode::TOO_MANY_REQUESTS, "RateLimited"));
        responses.push((StatusCode::INTERNAL_SERVER_ERROR, "InternalError"));
        responses.push((StatusCode::SERVICE_UNAVAILABLE, "Unavailable"));
    }
    responses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_of_one_response_share_a_status() {
        for (name, _, codes) in ALL {
            assert!(codes.iter().all(|code| code.status() == codes[0].status()), "{name}");
        }
    }
}
