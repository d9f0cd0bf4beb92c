//! `orchestrix.fail {message, retryable, untilAttempt}`: fails as its payload says. For testing retries and the
//! dead-letter queue.

use orchestrix_worker::{HandlerResult, JobCall, JobError};
use serde::Deserialize;

use crate::payload;

pub(crate) const TYPE: &str = "orchestrix.fail";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Fail {
    message: String,
    retryable: bool,
    /// The first attempt that succeeds; every attempt fails if absent.
    until_attempt: Option<u16>,
}

impl Default for Fail {
    fn default() -> Self {
        Self { message: "failed as requested".into(), retryable: true, until_attempt: None }
    }
}

pub(crate) async fn run(call: JobCall) -> HandlerResult {
    let Fail { message, retryable, until_attempt } = payload::read(&call.payload)?;
    match until_attempt {
        Some(attempt) if call.context.attempt() >= attempt => Ok(None),
        _ if retryable => Err(JobError::new(message)),
        _ => Err(JobError::fatal(message)),
    }
}
