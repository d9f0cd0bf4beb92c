//! What clients ask about jobs: one file for each request.

pub(crate) mod batch;
pub(crate) mod cancel;
pub(crate) mod create;
pub(crate) mod get;
pub(crate) mod release;
pub(crate) mod result;

use orchestrix_api::Code;
use orchestrix_core::JobId;

use crate::refusal::Refusal;

/// The id in a path. What is no id belongs to no job.
pub(crate) fn id(text: &str) -> Result<JobId, Refusal> {
    text.parse().map_err(|_| Refusal::new(Code::JobNotFound, "there is no such job"))
}
