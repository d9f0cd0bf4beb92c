//! `orchestrix.fail {message, retryable, untilAttempt}`: fails as it is told, to see what becomes of failures.

use orchestrix_worker::{HandlerResult, JobCall, JobError};
use serde::Deserialize;

use super::payload;

pub(super) const TYPE: &str = "orchestrix.fail";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Fail {
    message: String,
    retryable: bool,
    /// The first attempt that does not fail; none if all do.
    until_attempt: Option<u16>,
}

impl Default for Fail {
    fn default() -> Self {
        Self { message: "it was asked to fail".into(), retryable: true, until_attempt: None }
    }
}

pub(super) async fn run(call: JobCall) -> HandlerResult {
    let Fail { message, retryable, until_attempt } = payload::read(&call.payload)?;
    match until_attempt {
        Some(attempt) if call.context.attempt() >= attempt => Ok(None),
        _ if retryable => Err(JobError::new(message)),
        _ => Err(JobError::fatal(message)),
    }
}
