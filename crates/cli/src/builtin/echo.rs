//! `orchestrix.echo`: its result is its payload, byte for byte.

use orchestrix_worker::{Answer, Call};

pub(super) const TYPE: &str = "orchestrix.echo";

pub(super) async fn run(call: Call) -> Answer {
    Ok(Some(call.payload))
}
