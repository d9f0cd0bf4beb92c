//! What the leader does, each in a file of its own: a bounded step, and when the next one is due.

mod bulk;
mod expire;
mod fire;
mod fold;
mod forget;
mod measure;
mod promote;
mod reap;
mod retain;
mod time_out;
mod unblock;

use std::time::Duration;

use orchestrix_store::SweepResult;

use crate::{
    pace::jittered,
    service::{Service, Step},
};

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
        Box::<bulk::Bulk>::default(),
        Box::<measure::Measure>::default(),
    ]
}

/// The pause between two full steps, so that claims and enqueues get their turn.
const BREATH: Duration = Duration::from_millis(5);

/// The pause after a step that moved nothing although something is due: somebody has locked it, and may keep it for a while.
const HELD: Duration = Duration::from_millis(100);

/// After a sweep: on with it if there may be more, or when the next job is due.
fn swept(swept: SweepResult, limit: usize) -> Step {
    let next = match swept {
        SweepResult { count, .. } if count >= limit => Some(BREATH),
        SweepResult { count: 0, next_in: Some(Duration::ZERO) } => Some(jittered(HELD)),
        SweepResult { next_in, .. } => next_in.map(|wait| wait.max(BREATH)),
    };
    Step { moved: swept.count, next }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(count: usize, next_in: Option<Duration>) -> Option<Duration> {
        swept(SweepResult { count, next_in }, 10).next
    }

    #[test]
    fn what_is_due_and_locked_does_not_make_a_leader_spin() {
        let pause = pause(0, Some(Duration::ZERO)).expect("it looks again");
        assert!(pause >= HELD / 2 && pause <= HELD, "{pause:?}");
    }

    #[test]
    fn a_sweep_goes_on_at_once_while_there_is_more_and_else_when_something_is_due() {
        assert_eq!(pause(10, None), Some(BREATH));
        assert_eq!(pause(3, Some(Duration::ZERO)), Some(BREATH), "the rest was too much for one step");
        assert_eq!(pause(0, Some(Duration::from_secs(7))), Some(Duration::from_secs(7)));
        assert_eq!(pause(0, Some(Duration::from_micros(1))), Some(BREATH));
        assert_eq!(pause(0, None), None);
    }
}
