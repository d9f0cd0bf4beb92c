//! Problems as they are described: an answer for each set of codes that may come with one status.

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

            // What is in it is written by `described`: the builder knows nothing of constants.
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
    /// The request cannot be read.
    Malformed = [MalformedRequest];
    /// The body, or the payload, the result or the checkpoint in it, is over its limit.
    TooLarge = [PayloadTooLarge];
    /// The body is not said to be JSON.
    NotJson = [UnsupportedMediaType];
    /// Fields break rules; all of them are named.
    Invalid = [ValidationFailed];
    /// Fields break rules; all of them are named. Or the key was used for a different request, whose job is named.
    InvalidOrReused = [ValidationFailed, IdempotencyKeyReused];
    /// No key is shown, or one that is not known here, has expired or was revoked.
    NoKey = [Unauthenticated];
    /// The key does not allow this, or another tenant is named. Where there are no keys: the request names another host than the server's address, or
    /// comes from a page of another place.
    NotForYou = [Forbidden];
    /// This server keeps none.
    NotKept = [NotFound];
    /// There is no such job.
    NoSuchJob = [JobNotFound];
    /// There is no such key.
    NoSuchKey = [KeyNotFound];
    /// There is no such schedule.
    NoSuchSchedule = [ScheduleNotFound];
    /// There is no such operation.
    NoSuchOperation = [OperationNotFound];
    /// There is no such worker.
    NoSuchWorker = [WorkerNotFound];
    /// As many operations are under way as may be: wait for one to end, or abort one.
    TooManyAtOnce = [TooManyOperations];
    /// The job has no result: it is not over, or it failed, or it was cancelled.
    NoResult = [NotFinished, JobFailed, JobCancelled];
    /// The job is over.
    Finished = [JobFinished];
    /// The job completed, or it is not over: only dead and cancelled ones can be retried.
    NotRetryable = [JobFinished, NotFinished];
    /// No queue can be called so.
    NoSuchQueue = [NotFound];
    /// The token does not own its job any more; nothing was changed.
    Lost = [LeaseLost];
    /// More requests come than can be answered; try again.
    TooMany = [RateLimited];
    /// A fault of ours; the log says what.
    Fault = [Internal];
    /// The database is away or too slow; try again.
    Away = [Unavailable];
}

/// Every problem as `components.responses` has it.
pub(super) fn described() -> Map<String, Value> {
    ALL.iter().map(|(name, doc, codes)| ((*name).to_owned(), response(doc, codes))).collect()
}

fn response(doc: &[&str], codes: &[Code]) -> Value {
    let text = doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let status = codes[0].status();
    let words: Vec<String> = codes.iter().map(|code| code.as_str()).collect();
    let only = json!({
        "type": "object",
        "properties": {"status": {"const": status}, "code": {"enum": words}},
    });
    let mut response = json!({
        "description": text,
        "content": {
            "application/problem+json": {"schema": {"allOf": [{"$ref": "#/components/schemas/Problem"}, only]}},
        },
    });
    if matches!(status, 429 | 503) {
        response["headers"] = json!({"Retry-After": {"$ref": "#/components/headers/Retry-After"}});
    }
    response
}

/// What an operation shares with others.
#[derive(Clone, Copy)]
pub(super) struct Shares {
    pub(super) needs_key: bool,
    pub(super) worked_on: bool,
    pub(super) may_have_body: bool,
}

/// What an operation may answer beside what its handler says.
pub(super) fn shared(shares: Shares) -> Vec<(StatusCode, &'static str)> {
    let mut answers = vec![(StatusCode::FORBIDDEN, "NotForYou")];
    if shares.needs_key {
        answers.push((StatusCode::UNAUTHORIZED, "NoKey"));
    }
    // Whatever comes as a body is taken in: where none is described it must say nothing.
    if shares.may_have_body {
        answers.push((StatusCode::PAYLOAD_TOO_LARGE, "TooLarge"));
        answers.push((StatusCode::UNSUPPORTED_MEDIA_TYPE, "NotJson"));
    }
    if shares.worked_on {
        // Whatever is asked behind the question mark, where nothing is described, too.
        answers.push((StatusCode::BAD_REQUEST, "Malformed"));
        answers.push((StatusCode::UNPROCESSABLE_ENTITY, "Invalid"));
    }
    // A key is looked up, or more than that.
    if shares.needs_key || shares.worked_on {
        answers.push((StatusCode::TOO_MANY_REQUESTS, "TooMany"));
        answers.push((StatusCode::INTERNAL_SERVER_ERROR, "Fault"));
        answers.push((StatusCode::SERVICE_UNAVAILABLE, "Away"));
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_of_one_answer_have_one_status() {
        for (name, _, codes) in ALL {
            assert!(codes.iter().all(|code| code.status() == codes[0].status()), "{name}");
        }
    }
}
