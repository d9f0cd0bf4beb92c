//! From the clock's face to instants, through gaps and overlaps.
//!
//! A zone's time is cut into stretches of one offset each. Inside a stretch the face runs evenly, so matching is a search
//! on the face; between two stretches it jumps ahead (a gap) or back (an overlap), and there the rule is:
//!
//! - an expression that follows real time matches whatever the face shows: a gap is never shown, an overlap twice;
//! - a fixed one means each face time once: what lies in a gap is due at the first instant after it, all of it together,
//!   and what an overlap shows again is not due again.

use jiff::{Timestamp, tz::TimeZone};

use super::{cron::Cron, face::Face};

// 29 February on a given weekday can be 40 years away, across 2100; nothing that ever matches is further.
const HORIZON: i64 = 50 * 366 * 24 * 3600;

// Where time begins here: the first day that an instant can lie in has no midnight that is one.
const YEAR_ONE: i64 = -62_135_596_800;

/// All instants of an expression in a zone, in order.
pub(super) struct Walk<'a> {
    face: &'a Face,
    real_time: bool,
    zone: &'a TimeZone,
    stretch: Stretch,
    from: i64,
    horizon: i64,
}

impl<'a> Walk<'a> {
    /// The instants strictly after `after`; `None` at the end of time.
    pub(super) fn after(cron: &'a Cron, zone: &'a TimeZone, after: Timestamp) -> Option<Self> {
        let from = (second_of(after) + 1).max(YEAR_ONE);
        let stretch = Stretch::containing(zone, from)?;
        let horizon = from.saturating_add(HORIZON).min(Timestamp::MAX.as_second());
        Some(Self { face: cron.face(), real_time: cron.follows_real_time(), zone, stretch, from, horizon })
    }

    /// How many instants there are up to and including `until`.
    pub(super) fn count_until(mut self, until: Timestamp) -> u64 {
        let until = second_of(until) + 1;
        let mut count = 0;
        while self.from < until {
            let end = self.stretch.end.min(until);
            let from = self.face_from();
            count += self.face.count(from, self.stretch.face(end));
            // A gap adds one, unless the instant after it is due of itself.
            if self.gap_is_due() && self.face.count(from, from + 1) == 0 {
                count += 1;
            }
            if !self.advance() {
                break;
            }
        }
        count
    }

    fn face_from(&self) -> i64 {
        let face = self.stretch.face(self.from);
        if self.real_time { face } else { face.max(self.stretch.shown_before()) }
    }

    fn gap_is_due(&self) -> bool {
        let Stretch { start, .. } = self.stretch;
        !self.real_time
            && start >= self.from
            && self.face.next(self.stretch.shown_before(), self.stretch.face(start)).is_some()
    }

    fn advance(&mut self) -> bool {
        self.from = self.stretch.end;
        match self.stretch.following(self.zone) {
            Some(stretch) => {
                self.stretch = stretch;
                true
            }
            None => false,
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        loop {
            if self.from > self.horizon {
                return None;
            }
            let found = if self.gap_is_due() {
                Some(self.stretch.start)
            } else {
                let end = self.stretch.face(self.stretch.end.min(self.horizon));
                self.face.next(self.face_from(), end).map(|face| face - self.stretch.offset)
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

/// The seconds `[start, end)` of one offset.
#[derive(Clone, Copy)]
struct Stretch {
    start: i64,
    end: i64,
    offset: i64,
    offset_before: i64,
}

impl Stretch {
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

    fn face(self, second: i64) -> i64 {
        second.saturating_add(self.offset)
    }

    /// Up to where the stretch before has shown the face; beyond this stretch's own start after an overlap.
    fn shown_before(self) -> i64 {
        self.start.saturating_add(self.offset_before)
    }
}

fn end_of(zone: &TimeZone, time: Timestamp) -> i64 {
    zone.following(time).next().map_or(i64::MAX, |change| change.timestamp().as_second())
}

/// The whole second that `time` falls in.
pub(super) fn second_of(time: Timestamp) -> i64 {
    // Exact: a timestamp's seconds fit i64 by far.
    i64::try_from(time.as_nanosecond().div_euclid(1_000_000_000)).unwrap_or(i64::MAX)
}
