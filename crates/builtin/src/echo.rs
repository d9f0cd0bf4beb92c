//! `orchestrix.echo`: returns its payload as its result, byte for byte.

use orchestrix_worker::{HandlerResult, JobCall};

pub(crate) const TYPE: &str = "orchestrix.echo";

pub(crate) async fn run(call: JobCall) -> HandlerResult {
    Ok(Some(call.payload))
}
