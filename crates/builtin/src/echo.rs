//! `orchestrix.echo`: returns its payload as its result, byte for byte.

use orchestrix_worker::{Answer, Call};

pub(crate) const TYPE: &str = "orchestrix.echo";

pub(crate) async fn run(call: Call) -> Answer {
    Ok(Some(call.payload))
}
