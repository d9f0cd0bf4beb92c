//! Which operations rest because a step of theirs was refused, and when one has been refused often enough.
//!
//! What is counted are refusals at one place in a row, while the store answers: whoever counts asks it to record the turn first. The counts
//! are this leader's; whoever takes over begins anew.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use orchestrix_core::{JobId, OperationId};
use orchestrix_store::Operation;

/// The pause after the first refusal; twice as long after each that follows, up to the longest.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// Operations whose next step was refused.
#[derive(Debug, Default)]
pub(super) struct Tries(HashMap<OperationId, Refused>);

#[derive(Debug)]
struct Refused {
    at: Option<JobId>,
    times: u32,
    /// Others come first until then.
    rests_until: Instant,
}

impl Tries {
    /// The first of `open` that does not rest; or how long until one has rested, if any does. Forgets all others.
    pub(super) fn next(&mut self, open: Vec<Operation>, now: Instant) -> Result<Operation, Option<Duration>> {
        self.0.retain(|id, refused| open.iter().any(|operation| operation.id == *id && operation.cursor == refused.at));
        let rests_until = |operation: &Operation| self.0.get(&operation.id).map(|refused| refused.rests_until);
        let wait = open.iter().filter_map(rests_until).map(|until| until.saturating_duration_since(now)).min();
        let ready = open.into_iter().find(|operation| rests_until(operation).is_none_or(|until| until <= now));
        ready.ok_or(wait)
    }

    /// How often it was refused where it stands.
    pub(super) fn so_far(&self, operation: &Operation) -> u32 {
        let refused = self.0.get(&operation.id).filter(|refused| refused.at == operation.cursor);
        refused.map_or(0, |refused| refused.times)
    }

    /// Notes that it was refused once more; how long it rests.
    pub(super) fn refused(&mut self, operation: &Operation, now: Instant) -> Duration {
        let before = self.so_far(operation);
        let rest = FIRST.saturating_mul(2u32.saturating_pow(before)).min(LONGEST);
        let refused = Refused { at: operation.cursor, times: before.saturating_add(1), rests_until: now + rest };
        self.0.insert(operation.id, refused);
        rest
    }

    /// Lets others go first for a moment, and counts nothing.
    pub(super) fn put_off(&mut self, operation: &Operation, now: Instant) {
        let (at, times) = (operation.cursor, self.so_far(operation));
        self.0.insert(operation.id, Refused { at, times, rests_until: now + FIRST });
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::Timestamp;
    use orchestrix_store::{BulkAction, JobFilter, NewOperation};

    use super::*;

    fn operation(n: u8) -> Operation {
        let (action, filter, actor) = (BulkAction::Cancel, JobFilter::default(), "ann".into());
        let wanted = NewOperation { action, filter, dry_run: false, actor, tenant: None };
        let id = OperationId::after(None, Timestamp::UNIX_EPOCH, [n; 10]);
        wanted.begin(id, Timestamp::UNIX_EPOCH)
    }

    fn moved(operation: &Operation, n: u8) -> Operation {
        Operation { cursor: Some(JobId::new(Timestamp::UNIX_EPOCH, [n; 10])), ..operation.clone() }
    }

    #[test]
    fn one_that_was_refused_rests_ever_longer_and_others_go_on() {
        let mut tries = Tries::default();
        let (a, b) = (operation(1), operation(2));
        let start = Instant::now();
        let next = |tries: &mut Tries, now| tries.next(vec![a.clone(), b.clone()], now).map(|operation| operation.id);
        assert_eq!(next(&mut tries, start), Ok(a.id));
        assert_eq!(tries.refused(&a, start), FIRST);
        assert_eq!(next(&mut tries, start), Ok(b.id));
        assert_eq!(tries.next(vec![a.clone()], start), Err(Some(FIRST)), "it is the only one");
        assert_eq!(next(&mut tries, start + FIRST), Ok(a.id), "it has rested");
        assert_eq!(tries.refused(&a, start), 2 * FIRST);
        for _ in 0..40 {
            assert!(tries.refused(&a, start) <= LONGEST);
        }
        assert_eq!(tries.next(Vec::new(), start), Err(None));
    }

    #[test]
    fn only_refusals_in_a_row_at_one_place_count() {
        let mut tries = Tries::default();
        let a = operation(1);
        let now = Instant::now();
        for n in 0..3 {
            assert_eq!(tries.so_far(&a), n);
            tries.refused(&a, now);
        }
        let further = moved(&a, 1);
        assert_eq!(tries.so_far(&further), 0);
        assert_eq!(tries.next(vec![further.clone()], now), Ok(further.clone()), "it moved, and rests no more");
        assert_eq!(tries.so_far(&a), 0, "it is not remembered");
        tries.refused(&further, now);
        tries.put_off(&further, now);
        assert_eq!(tries.so_far(&further), 1, "what could not be recorded was not refused");
        assert_eq!(tries.next(vec![further.clone()], now), Err(Some(FIRST)));
        tries.clear();
        assert_eq!(tries.so_far(&further), 0);
    }
}
