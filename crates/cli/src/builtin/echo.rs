//! `orchestrix.echo`: its result is its payload, byte for byte.

use orchestrix_worker::{HandlerResult, JobCall};

pub(super) const TYPE: &str = "orchestrix.echo";

pub(super) async fn run(call: JobCall) -> HandlerResult {
    Ok(Some(call.payload))
}
