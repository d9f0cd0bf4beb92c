//! Which occurrences are fired now, which were missed, and when to look again.
//!
//! An occurrence is *due* at its nominal time plus its jitter. It is *on time* while it is due no longer than a grace, and
//! *late* after that. The grace is half the time to the next nominal time, but at least 5 s, so that a busy leader costs
//! a brisk schedule nothing, and at most 60 s, which covers a change of leader. What is on time fires, all of it, under every
//! policy; what is late is for the [`Misfire`] policy.
//!
//! Jitter never reaches past the next nominal time, so occurrences are due in their order, and of those whose nominal
//! time has passed only the newest can still be waiting.

use std::time::Duration;

use super::{Cadence, Misfire, Reason, ScheduleName, cadence::just_before, jitter::jitter};
use crate::Timestamp;

const MIN_GRACE: Duration = Duration::from_secs(5);
const MAX_GRACE: Duration = Duration::from_secs(60);

/// What of a schedule decides about its times.
#[derive(Debug, Clone, Copy)]
pub struct Timing<'a> {
    /// Whose times they are; part of the jitter.
    pub name: &'a ScheduleName,
    /// The nominal times.
    pub cadence: &'a Cadence,
    /// What becomes of late ones.
    pub misfire: Misfire,
    /// How many late ones [`Misfire::CatchUp`] fires.
    pub catch_up_limit: u32,
    /// How far occurrences are spread.
    pub jitter: Duration,
    /// No nominal time before this.
    pub start_at: Option<Timestamp>,
    /// No nominal time at or after this.
    pub end_at: Option<Timestamp>,
}

/// One occurrence to fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Firing {
    /// The time it stands for.
    pub nominal: Timestamp,
    /// [`Reason::CatchUp`] if it is late.
    pub reason: Option<Reason>,
}

/// Nominal times that were passed over; one line in the ledger of occurrences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first of them.
    pub from: Timestamp,
    /// The last of them; the same if there is only one.
    pub to: Timestamp,
    /// How many there are, from `from` to `to`.
    pub count: u64,
}

/// What to do about a schedule now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Fire these, in this order.
    pub fire: Vec<Firing>,
    /// Record these as missed: in order, the newest one by one, all before as one span.
    pub missed: Vec<Span>,
    /// Count from here the next time: the last nominal time that was fired or missed, or what was passed in.
    pub counted_from: Timestamp,
    /// The nominal time that comes next, if one does.
    pub next_nominal: Option<Timestamp>,
    /// When to plan again: that time and its jitter. Not after `now` if the limit left some to fire.
    pub next_fire_at: Option<Timestamp>,
}

impl Plan {
    /// How many missed occurrences are listed one by one.
    pub const MISSED_LISTED: u64 = 24;
}

impl Timing<'_> {
    /// Whether both name the same nominal times, and are due at the same moments.
    pub fn keeps_the_times_of(&self, other: &Self) -> bool {
        let Self { name, cadence, misfire: _, catch_up_limit: _, jitter, start_at, end_at } = *self;
        (name, cadence, jitter, start_at, end_at)
            == (other.name, other.cadence, other.jitter, other.start_at, other.end_at)
    }

    /// When the occurrence of `nominal` is due: jitter later, and before the next nominal time.
    pub fn due(&self, nominal: Timestamp) -> Timestamp {
        if self.jitter.is_zero() {
            return nominal;
        }
        let max = self.gap_after(nominal).map_or(self.jitter, |gap| gap.min(self.jitter));
        nominal.checked_add(jitter(self.name, nominal, max)).unwrap_or(nominal)
    }

    /// The nominal times after `after` that start and end allow, at most `limit`.
    pub fn upcoming(&self, after: Timestamp, limit: usize) -> Vec<Timestamp> {
        self.cadence.after(self.not_before_start(after)).take_while(|time| self.before_end(*time)).take(limit).collect()
    }

    /// The nominal times from `from` on and before `to` that start and end allow, at most `limit`.
    pub fn between(&self, from: Timestamp, to: Timestamp, limit: usize) -> Vec<Timestamp> {
        let times = self.cadence.after(self.not_before_start(just_before(from)));
        times.take_while(|time| *time < to && self.before_end(*time)).take(limit).collect()
    }

    /// All nominal times after `after` up to `until` as one span, such as those that passed during a pause.
    pub fn passed_over(&self, after: Timestamp, until: Timestamp) -> Option<Span> {
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
        let before = self.cadence.before_last(after, until, 1);
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

    // How many of the due ones, the last being `last`, are on time.
    fn on_time(&self, after: Timestamp, last: Timestamp, now: Timestamp) -> u64 {
        let cutoff = now.checked_sub(self.grace(last)).unwrap_or(Timestamp::MIN);
        let sure_after = after.max(just_before(cutoff));
        let sure = self.cadence.count(sure_after, last);
        // Jitter may have brought one older nominal time across the cut-off, but not two.
        match self.last(after, sure_after) {
            Some(older) if older <= last && self.due(older) >= cutoff => sure + 1,
            _ => sure,
        }
    }

    // The due occurrences after `after`: the last of them, and how many.
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
        let listed_after = self.cadence.before_last(after, until, Plan::MISSED_LISTED);
        let listed = self.cadence.after(listed_after).take_while(|time| *time <= until);
        let listed = listed.map(|time| Span { from: time, to: time, count: 1 });
        self.span(after, listed_after).into_iter().chain(listed).collect()
    }
}

/// Decides about the occurrences after `counted_from` that are due at `now`, firing at most `limit` (and at least one) of them.
///
/// `counted_from` is the latest of the last nominal time that was dealt with, the last edit of its times and the last resume. The work is
/// bounded, whatever the cadence and however long nobody was there: what is passed over is counted, not walked through.
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
        let fired_after = timing.cadence.before_last(after, last, late_fired + on_time);
        plan.missed = timing.missed(after, fired_after);
        let due = timing.cadence.after(fired_after).take_while(|time| *time <= last).take(limit.max(1));
        plan.fire = (0..)
            .zip(due)
            .map(|(index, nominal): (u64, _)| Firing {
                nominal,
                reason: (index < late_fired).then_some(Reason::CatchUp),
            })
            .collect();
        let dealt_with = plan.fire.last().map(|firing| firing.nominal).or(plan.missed.last().map(|span| span.to));
        plan.counted_from = dealt_with.unwrap_or(counted_from);
    }
    plan.next_nominal = timing.upcoming(plan.counted_from, 1).pop();
    plan.next_fire_at = plan.next_nominal.map(|nominal| timing.due(nominal));
    plan
}
