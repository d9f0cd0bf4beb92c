//! `orchestrix.noop`: does nothing and completes, whatever its payload. For testing a deployment.

use orchestrix_worker::{Answer, Call};

pub(crate) const TYPE: &str = "orchestrix.noop";

pub(crate) async fn run(_: Call) -> Answer {
    Ok(None)
}
