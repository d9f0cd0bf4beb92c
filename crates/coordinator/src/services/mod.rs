//! What the leader does, each in a file of its own: a bounded step, and when the next one is due.

mod expire;
mod fire;
mod fold;
mod forget;
mod promote;
mod reap;
mod retain;
mod time_out;
mod unblock;

use std::time::Duration;

use orchestrix_store::Swept;

use crate::service::{Service, Step};

/// All of them.
pub(crate) fn all() -> Vec<Box<dyn Service>> {
    vec![
        Box::new(promote::Promote),
        Box::new(fire::Fire),
        Box::new(expire::Expire),
        Box::new(unblock::Unblock),
        Box::new(reap::Reap),
        Box::new(time_out::TimeOut),
        Box::new(forget::Forget),
        Box::new(fold::Fold),
        Box::new(retain::Retain),
    ]
}

/// The pause between two full steps, so that claims and enqueues get their turn.
const BREATH: Duration = Duration::from_millis(5);

/// After a sweep: on with it if there may be more, or when the next job is due.
fn swept(swept: Swept, limit: usize) -> Step {
    let next = if swept.count >= limit { Some(BREATH) } else { swept.next_in.map(|wait| wait.max(BREATH)) };
    Step { moved: swept.count, next }
}
