//! Which operations pause because their last batch was refused, and how often in a row.
//!
//! Only refusals by an available store at an unchanged cursor count. The counts belong to this leader; its successor
//! starts at zero.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use orchestrix_core::{JobId, OperationId};
use orchestrix_store::Operation;

/// The pause after the first refusal. It doubles with each further one, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The operations whose last batch was refused.
#[derive(Debug, Default)]
pub(super) struct Refusals(HashMap<OperationId, Refusal>);

#[derive(Debug)]
struct Refusal {
    cursor: Option<JobId>,
    count: u32,
    paused_until: Instant,
}

impl Refusals {
    /// Returns the first of `open` that is not paused, or how long until the first pause ends, if any is paused. Drops
    /// the records of operations that are closed or have advanced.
    pub(super) fn next_ready(&mut self, open: Vec<Operation>, now: Instant) -> Result<Operation, Option<Duration>> {
        let is_current = |id, refusal: &Refusal| {
            open.iter().any(|operation| operation.id == id && operation.cursor == refusal.cursor)
        };
        self.0.retain(|id, refusal| is_current(*id, refusal));
        let paused_until = |operation: &Operation| self.0.get(&operation.id).map(|refusal| refusal.paused_until);
        let wait = open.iter().filter_map(paused_until).map(|until| until.saturating_duration_since(now)).min();
        let ready = open.into_iter().find(|operation| paused_until(operation).is_none_or(|until| until <= now));
        ready.ok_or(wait)
    }

    /// How often in a row the operation was refused at its cursor.
    pub(super) fn count(&self, operation: &Operation) -> u32 {
        let refusal = self.0.get(&operation.id).filter(|refusal| refusal.cursor == operation.cursor);
        refusal.map_or(0, |refusal| refusal.count)
    }

    /// Counts one more refusal and returns how long the operation pauses.
    pub(super) fn record(&mut self, operation: &Operation, now: Instant) -> Duration {
        let before = self.count(operation);
        let pause = FIRST_PAUSE.saturating_mul(2u32.saturating_pow(before)).min(LONGEST_PAUSE);
        let refusal = Refusal { cursor: operation.cursor, count: before.saturating_add(1), paused_until: now + pause };
        self.0.insert(operation.id, refusal);
        pause
    }

    /// Pauses the operation briefly without counting a refusal.
    pub(super) fn postpone(&mut self, operation: &Operation, now: Instant) {
        let (cursor, count) = (operation.cursor, self.count(operation));
        self.0.insert(operation.id, Refusal { cursor, count, paused_until: now + FIRST_PAUSE });
    }

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
        let new = NewOperation { action, filter, dry_run: false, actor, tenant: None };
        let id = OperationId::after(None, Timestamp::UNIX_EPOCH, [n; 10]);
        new.begin(id, Timestamp::UNIX_EPOCH)
    }

    fn with_cursor(operation: &Operation, n: u8) -> Operation {
        Operation { cursor: Some(JobId::new(Timestamp::UNIX_EPOCH, [n; 10])), ..operation.clone() }
    }

    #[test]
    fn a_refused_operation_pauses_ever_longer_while_others_advance() {
        let mut refusals = Refusals::default();
        let (a, b) = (operation(1), operation(2));
        let start = Instant::now();
        let next = |refusals: &mut Refusals, now| {
            refusals.next_ready(vec![a.clone(), b.clone()], now).map(|operation| operation.id)
        };
        assert_eq!(next(&mut refusals, start), Ok(a.id));
        assert_eq!(refusals.record(&a, start), FIRST_PAUSE);
        assert_eq!(next(&mut refusals, start), Ok(b.id));
        assert_eq!(refusals.next_ready(vec![a.clone()], start), Err(Some(FIRST_PAUSE)), "no other operation is open");
        assert_eq!(next(&mut refusals, start + FIRST_PAUSE), Ok(a.id), "its pause is over");
        assert_eq!(refusals.record(&a, start), 2 * FIRST_PAUSE);
        for _ in 0..40 {
            assert!(refusals.record(&a, start) <= LONGEST_PAUSE);
        }
        assert_eq!(refusals.next_ready(Vec::new(), start), Err(None));
    }

    #[test]
    fn only_consecutive_refusals_at_one_cursor_count() {
        let mut refusals = Refusals::default();
        let a = operation(1);
        let now = Instant::now();
        for n in 0..3 {
            assert_eq!(refusals.count(&a), n);
            refusals.record(&a, now);
        }
        let advanced = with_cursor(&a, 1);
        assert_eq!(refusals.count(&advanced), 0);
        let next = refusals.next_ready(vec![advanced.clone()], now);
        assert_eq!(next, Ok(advanced.clone()), "it advanced, so its pause is over");
        assert_eq!(refusals.count(&a), 0, "the refusals at the old cursor are dropped");
        refusals.record(&advanced, now);
        refusals.postpone(&advanced, now);
        assert_eq!(refusals.count(&advanced), 1, "postponing does not count as a refusal");
        assert_eq!(refusals.next_ready(vec![advanced.clone()], now), Err(Some(FIRST_PAUSE)));
        refusals.clear();
        assert_eq!(refusals.count(&advanced), 0);
    }
}
