//! What clients ask about jobs: one file for each request.

pub(crate) mod batch;
pub(crate) mod cancel;
pub(crate) mod create;
pub(crate) mod get;
pub(crate) mod release;
pub(crate) mod result;

use orchestrix_api::Code;
use orchestrix_core::JobId;

use crate::api_error::ApiError;

/// The length of an id as it is written everywhere: one job has one address.
const ID: usize = 36;

/// The id in a path. What is no id belongs to no job.
pub(crate) fn id(text: &str) -> Result<JobId, ApiError> {
    let id = (text.len() == ID).then(|| text.parse().ok()).flatten();
    id.ok_or_else(|| ApiError::new(Code::JobNotFound, "there is no such job"))
}
