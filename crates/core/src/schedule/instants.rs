//! Maps wall-clock matches to instants, through skipped and repeated wall-clock times.
//!
//! The time of a zone is a sequence of periods with a constant UTC offset. Within a period the wall clock advances
//! evenly, so matching is a search on the wall clock. Between two periods it jumps ahead (a gap) or back (an overlap):
//!
//! - An expression that follows real time matches what the wall clock shows: nothing in a gap, an overlap twice.
//! - A fixed expression matches each wall-clock time once. Matches within a gap are due together, at the first instant
//!   after it. Matches in the second pass of an overlap are not due again.

use jiff::{Timestamp, tz::TimeZone};

use super::{cron::Cron, matcher::Matcher};

// 29 February on a given weekday can be 40 years away, across 2100. Nothing that ever matches is further away.
const HORIZON: i64 = 50 * 366 * 24 * 3600;

// The earliest second to search: on the first day that an instant can represent, midnight is not representable.
const YEAR_ONE: i64 = -62_135_596_800;

/// The instants at which an expression is due in a zone, in order.
pub(super) struct Instants<'a> {
    matcher: &'a Matcher,
    real_time: bool,
    zone: &'a TimeZone,
    period: OffsetPeriod,
    from: i64,
    horizon: i64,
}

impl<'a> Instants<'a> {
    /// The instants strictly after `after`, or `None` at the end of time.
    pub(super) fn after(cron: &'a Cron, zone: &'a TimeZone, after: Timestamp) -> Option<Self> {
        let from = (second_of(after) + 1).max(YEAR_ONE);
        let period = OffsetPeriod::containing(zone, from)?;
        let horizon = from.saturating_add(HORIZON).min(Timestamp::MAX.as_second());
        Some(Self { matcher: cron.matcher(), real_time: cron.follows_real_time(), zone, period, from, horizon })
    }

    /// The number of instants up to and including `until`.
    pub(super) fn count_until(mut self, until: Timestamp) -> u64 {
        let until = second_of(until) + 1;
        let mut count = 0;
        while self.from < until {
            let end = self.period.end.min(until);
            let from = self.wall_from();
            count += self.matcher.count(from, self.period.wall(end));
            // A gap adds one, unless the first instant after it matches by itself.
            if self.gap_is_due() && self.matcher.count(from, from + 1) == 0 {
                count += 1;
            }
            if !self.advance() {
                break;
            }
        }
        count
    }

    fn wall_from(&self) -> i64 {
        let wall = self.period.wall(self.from);
        if self.real_time { wall } else { wall.max(self.period.previous_wall_end()) }
    }

    fn gap_is_due(&self) -> bool {
        let OffsetPeriod { start, .. } = self.period;
        !self.real_time
            && start >= self.from
            && self.matcher.next(self.period.previous_wall_end(), self.period.wall(start)).is_some()
    }

    fn advance(&mut self) -> bool {
        self.from = self.period.end;
        match self.period.following(self.zone) {
            Some(period) => {
                self.period = period;
                true
            }
            None => false,
        }
    }
}

impl Iterator for Instants<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        loop {
            if self.from > self.horizon {
                return None;
            }
            let found = if self.gap_is_due() {
                Some(self.period.start)
            } else {
                let end = self.period.wall(self.period.end.min(self.horizon));
                self.matcher.next(self.wall_from(), end).map(|wall| wall - self.period.offset)
            };
            if let Some(second) = found {
                self.from = second + 1;
                self.horizon = second.saturating_add(HORIZON).min(Timestamp::MAX.as_second());
                return Timestamp::from_second(second).ok();
            }
            if !self.advance() {
                return None;
            }
        }
    }
}

/// The seconds `[start, end)`, which have one UTC offset.
#[derive(Clone, Copy)]
struct OffsetPeriod {
    start: i64,
    end: i64,
    offset: i64,
    offset_before: i64,
}

impl OffsetPeriod {
    fn containing(zone: &TimeZone, second: i64) -> Option<Self> {
        let time = Timestamp::from_second(second).ok()?;
        let offset = zone.to_offset(time).seconds().into();
        let next = Timestamp::from_second(second + 1).ok()?;
        let (start, offset_before) = match zone.preceding(next).next() {
            Some(change) => {
                let start = change.timestamp().as_second();
                let before =
                    Timestamp::from_second(start - 1).map_or(offset, |time| zone.to_offset(time).seconds().into());
                (start, before)
            }
            None => (i64::MIN, offset),
        };
        Some(Self { start, end: end_of(zone, time), offset, offset_before })
    }

    fn following(self, zone: &TimeZone) -> Option<Self> {
        let time = Timestamp::from_second(self.end).ok()?;
        let offset = zone.to_offset(time).seconds().into();
        Some(Self { start: self.end, end: end_of(zone, time), offset, offset_before: self.offset })
    }

    fn wall(self, second: i64) -> i64 {
        second.saturating_add(self.offset)
    }

    /// Where the wall clock of the previous period ended. After an overlap that is beyond this period's own start.
    fn previous_wall_end(self) -> i64 {
        self.start.saturating_add(self.offset_before)
    }
}

fn end_of(zone: &TimeZone, time: Timestamp) -> i64 {
    zone.following(time).next().map_or(i64::MAX, |change| change.timestamp().as_second())
}

/// The whole second that `time` falls in.
pub(super) fn second_of(time: Timestamp) -> i64 {
    // Never saturates: the seconds of a timestamp fit i64.
    i64::try_from(time.as_nanosecond().div_euclid(1_000_000_000)).unwrap_or(i64::MAX)
}
