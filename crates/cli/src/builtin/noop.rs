//! `orchestrix.noop`: does nothing, whatever its payload, to see how a job goes its way.

use orchestrix_worker::{HandlerResult, JobCall};

pub(super) const TYPE: &str = "orchestrix.noop";

pub(super) async fn run(_: JobCall) -> HandlerResult {
    Ok(None)
}
