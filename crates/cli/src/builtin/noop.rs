//! `orchestrix.noop`: does nothing, whatever its payload, to see how a job goes its way.

use orchestrix_worker::{Answer, Call};

pub(super) const TYPE: &str = "orchestrix.noop";

pub(super) async fn run(_: Call) -> Answer {
    Ok(None)
}
