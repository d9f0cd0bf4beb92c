//! Which occurrences fire now, which were missed, and when to plan again.
//!
//! An occurrence is *due* at its nominal time plus its jitter. It is *on time* until a grace period after that, then
//! *late*. The grace period is half the time to the next nominal time, but at least 5 s, so that a busy leader does
//! not miss occurrences of a frequent schedule, and at most 60 s, which covers a change of leader.
//!
//! Every occurrence that is on time fires, whatever the policy. The [`Misfire`] policy decides about late ones.
//!
//! Jitter never reaches past the next nominal time. So occurrences are due in order, and of those whose nominal time
//! has passed only the newest can be not yet due.

use std::time::Duration;

use super::{Cadence, Misfire, Reason, ScheduleName, cadence::just_before, jitter::jitter};
use crate::Timestamp;

const MIN_GRACE: Duration = Duration::from_secs(5);
const MAX_GRACE: Duration = Duration::from_secs(60);

/// The part of a schedule that decides its times.
#[derive(Debug, Clone, Copy)]
pub struct Timing<'a> {
    /// The schedule's name, which goes into the jitter.
    pub name: &'a ScheduleName,
    /// The nominal times.
    pub cadence: &'a Cadence,
    /// What happens to late occurrences.
    pub misfire: Misfire,
    /// How many late occurrences [`Misfire::CatchUp`] fires.
    pub catch_up_limit: u32,
    /// The largest delay after a nominal time.
    pub jitter: Duration,
    /// No nominal time before this.
    pub start_at: Option<Timestamp>,
    /// No nominal time at or after this.
    pub end_at: Option<Timestamp>,
}

/// One occurrence to fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Firing {
    /// Its nominal time.
    pub nominal: Timestamp,
    /// [`Reason::CatchUp`] if it is late.
    pub reason: Option<Reason>,
}

/// Consecutive nominal times that did not fire, recorded as one occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first.
    pub from: Timestamp,
    /// The last; equal to `from` if there is only one.
    pub to: Timestamp,
    /// The number of nominal times from `from` to `to`.
    pub count: u64,
}

/// What to do for a schedule now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Fire these, in this order.
    pub fire: Vec<Firing>,
    /// Record these as missed, in order: the newest ones one by one, all earlier ones as one span.
    pub missed: Vec<Span>,
    /// Where the next plan starts: the last nominal time that fired or was missed, or the value passed in.
    pub counted_from: Timestamp,
    /// The next nominal time, if any.
    pub next_nominal: Option<Timestamp>,
    /// When to plan again: the next nominal time plus its jitter. Not after `now` if the limit left occurrences to
    /// fire.
    pub next_fire_at: Option<Timestamp>,
}

impl Plan {
    /// How many missed occurrences are recorded one by one.
    pub const MISSED_LISTED: u64 = 24;
}

impl Timing<'_> {
    /// Whether both have the same nominal times and jitter.
    pub fn same_times_as(&self, other: &Self) -> bool {
        let Self { name, cadence, misfire: _, catch_up_limit: _, jitter, start_at, end_at } = *self;
        (name, cadence, jitter, start_at, end_at)
            == (other.name, other.cadence, other.jitter, other.start_at, other.end_at)
    }

    /// When the occurrence of `nominal` is due: after its jitter, and before the next nominal time.
    pub fn due(&self, nominal: Timestamp) -> Timestamp {
        if self.jitter.is_zero() {
            return nominal;
        }
        let max = self.gap_after(nominal).map_or(self.jitter, |gap| gap.min(self.jitter));
        nominal.checked_add(jitter(self.name, nominal, max)).unwrap_or(nominal)
    }

    /// Up to `limit` nominal times after `after`, within start and end.
    pub fn upcoming(&self, after: Timestamp, limit: usize) -> Vec<Timestamp> {
        self.cadence.after(self.not_before_start(after)).take_while(|time| self.before_end(*time)).take(limit).collect()
    }

    /// Up to `limit` nominal times from `from` (inclusive) to `to` (exclusive), within start and end.
    pub fn between(&self, from: Timestamp, to: Timestamp, limit: usize) -> Vec<Timestamp> {
        let times = self.cadence.after(self.not_before_start(just_before(from)));
        times.take_while(|time| *time < to && self.before_end(*time)).take(limit).collect()
    }

    /// All nominal times after `after` and up to `until` as one span, such as those of a pause.
    pub fn span_between(&self, after: Timestamp, until: Timestamp) -> Option<Span> {
        self.span(self.not_before_start(after), self.not_after_end(until))
    }

    fn not_before_start(&self, after: Timestamp) -> Timestamp {
        self.start_at.map_or(after, |start| after.max(just_before(start)))
    }

    fn not_after_end(&self, until: Timestamp) -> Timestamp {
        self.end_at.map_or(until, |end| until.min(just_before(end)))
    }

    fn before_end(&self, time: Timestamp) -> bool {
        self.end_at.is_none_or(|end| time < end)
    }

    fn gap_after(&self, nominal: Timestamp) -> Option<Duration> {
        let next = self.cadence.next_after(nominal)?;
        Duration::try_from(next.duration_since(nominal)).ok()
    }

    fn last(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let before = self.cadence.start_of_last(after, until, 1);
        self.cadence.next_after(before).filter(|last| *last <= until)
    }

    fn span(&self, after: Timestamp, until: Timestamp) -> Option<Span> {
        let count = self.cadence.count(after, until);
        let from = self.cadence.next_after(after).filter(|_| count > 0)?;
        Some(Span { from, to: self.last(after, until)?, count })
    }

    fn grace(&self, last: Timestamp) -> Duration {
        self.gap_after(last).map_or(MAX_GRACE, |gap| (gap / 2).clamp(MIN_GRACE, MAX_GRACE))
    }

    // The number of due occurrences up to `last` that are on time.
    fn on_time(&self, after: Timestamp, last: Timestamp, now: Timestamp) -> u64 {
        let cutoff = now.checked_sub(self.grace(last)).unwrap_or(Timestamp::MIN);
        let certain_after = after.max(just_before(cutoff));
        let certain = self.cadence.count(certain_after, last);
        // Jitter can move one older occurrence past the cut-off, but not two.
        match self.last(after, certain_after) {
            Some(older) if older <= last && self.due(older) >= cutoff => certain + 1,
            _ => certain,
        }
    }

    // The last due occurrence after `after`, and the number of due ones.
    fn overdue(&self, after: Timestamp, now: Timestamp) -> Option<(Timestamp, u64)> {
        let until = self.not_after_end(now);
        let count = self.cadence.count(after, until);
        let last = self.last(after, until)?;
        if self.due(last) <= now {
            return Some((last, count));
        }
        Some((self.last(after, just_before(last))?, count - 1))
    }

    fn missed(&self, after: Timestamp, until: Timestamp) -> Vec<Span> {
        let listed_after = self.cadence.start_of_last(after, until, Plan::MISSED_LISTED);
        let listed = self.cadence.after(listed_after).take_while(|time| *time <= until);
        let listed = listed.map(|time| Span { from: time, to: time, count: 1 });
        self.span(after, listed_after).into_iter().chain(listed).collect()
    }
}

/// Plans the occurrences after `counted_from` that are due at `now`, firing at most `limit` of them (and at least
/// one).
///
/// `counted_from` is the latest of: the last nominal time that was processed, the last edit of the times, the last
/// resume. The work is bounded, however frequent the schedule and however long no leader was there: missed
/// occurrences are counted, not enumerated.
pub fn plan(timing: &Timing<'_>, counted_from: Timestamp, now: Timestamp, limit: usize) -> Plan {
    let after = timing.not_before_start(counted_from);
    let mut plan = Plan { fire: Vec::new(), missed: Vec::new(), counted_from, next_nominal: None, next_fire_at: None };
    if let Some((last, count)) = timing.overdue(after, now) {
        let on_time = timing.on_time(after, last, now);
        let late = count - on_time;
        let late_fired = match timing.misfire {
            Misfire::Skip => 0,
            Misfire::FireOnce => u64::from(on_time == 0),
            Misfire::CatchUp => late.min(timing.catch_up_limit.into()),
        };
        let fired_after = timing.cadence.start_of_last(after, last, late_fired + on_time);
        plan.missed = timing.missed(after, fired_after);
        let due = timing.cadence.after(fired_after).take_while(|time| *time <= last).take(limit.max(1));
        plan.fire = (0..)
            .zip(due)
            .map(|(index, nominal): (u64, _)| Firing {
                nominal,
                reason: (index < late_fired).then_some(Reason::CatchUp),
            })
            .collect();
        let processed = plan.fire.last().map(|firing| firing.nominal).or(plan.missed.last().map(|span| span.to));
        plan.counted_from = processed.unwrap_or(counted_from);
    }
    plan.next_nominal = timing.upcoming(plan.counted_from, 1).pop();
    plan.next_fire_at = plan.next_nominal.map(|nominal| timing.due(nominal));
    plan
}
