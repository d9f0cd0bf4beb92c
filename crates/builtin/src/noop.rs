//! `orchestrix.noop`: does nothing and completes, whatever its payload. For testing a deployment.

use orchestrix_worker::{HandlerResult, JobCall};

pub(crate) const TYPE: &str = "orchestrix.noop";

pub(crate) async fn run(_: JobCall) -> HandlerResult {
    Ok(None)
}
