//! Which wall-clock seconds a cron expression matches, without time zones.
//!
//! A wall-clock second counts from 1970-01-01 00:00:00 as a clock on the wall shows it. [`instants`](super::instants)
//! maps it to an instant, if it exists. Searches step by month, day, hour and minute, never by second, so an
//! expression that matches nothing costs one step per month.

use jiff::{Timestamp, civil::Date, tz::Offset};

use super::days::Days;

const DAY: i64 = 24 * 3600;

/// The fields of an expression as bit sets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Matcher {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u32,
    pub(super) days: Days,
    /// Bit 1 is January.
    pub(super) months: u16,
}

impl Matcher {
    /// The first matching second in `[from, until)`.
    pub(super) fn next(&self, from: i64, until: i64) -> Option<i64> {
        let (start_day, second) = (from.div_euclid(DAY), from.rem_euclid(DAY));
        let date = date_of(start_day)?;
        // The first day is searched from the time of `from`, every later day from midnight.
        if let Some(time) = self.next_time(second)
            && self.matches_day(date)
        {
            return Some(start_day * DAY + time).filter(|found| *found < until);
        }
        let midnight = self.next_time(0)?;
        let mut first = date.first_of_month();
        let mut later_days = u32::MAX.checked_shl(u32::from(date.day().unsigned_abs()) + 1).unwrap_or(0);
        loop {
            let month_start = day_of(first);
            if month_start * DAY >= until {
                return None;
            }
            let mask = self.days_of_month(first) & later_days;
            if mask != 0 {
                let found = (month_start + i64::from(mask.trailing_zeros()) - 1) * DAY + midnight;
                return Some(found).filter(|found| *found < until);
            }
            later_days = u32::MAX;
            first = next_month(first)?;
        }
    }

    /// The number of matching seconds in `[from, until)`.
    pub(super) fn count(&self, from: i64, until: i64) -> u64 {
        if from >= until {
            return 0;
        }
        let a_day = self.times_before(DAY);
        let (first_day, last_day) = (from.div_euclid(DAY), until.div_euclid(DAY));
        let edge = |day: i64, second: i64| match date_of(day) {
            Some(date) if self.matches_day(date) => self.times_before(second),
            _ => 0,
        };
        self.count_days(first_day, last_day) * a_day + edge(last_day, until.rem_euclid(DAY))
            - edge(first_day, from.rem_euclid(DAY))
    }

    // The number of matching days in [from, until).
    fn count_days(&self, from: i64, until: i64) -> u64 {
        let mut count = 0;
        let mut month = date_of(from).map(Date::first_of_month);
        while let Some(first) = month {
            let start = day_of(first);
            if start >= until {
                break;
            }
            // Bit n of the mask is day `start + n - 1`. A shift by 32 or more clears the mask.
            let below = |day: i64| u32::try_from((day - start + 1).clamp(0, 32)).unwrap_or(32);
            let low = u32::MAX.checked_shl(below(from)).unwrap_or(0);
            let high = u32::MAX.checked_shl(below(until)).unwrap_or(0);
            count += u64::from((self.days_of_month(first) & low & !high).count_ones());
            month = next_month(first);
        }
        count
    }

    fn matches_day(&self, date: Date) -> bool {
        self.days_of_month(date.first_of_month()) & (1 << date.day()) != 0
    }

    fn days_of_month(&self, first: Date) -> u32 {
        if self.months & (1 << first.month()) == 0 { 0 } else { self.days.of_month(first) }
    }

    // The first matching second of a day at or after `second`.
    fn next_time(&self, second: i64) -> Option<i64> {
        let (mut hour, mut minute, mut second) = (second / 3600, second / 60 % 60, second % 60);
        loop {
            let found = bit_from(u64::from(self.hours), hour)?;
            if found > hour {
                (hour, minute, second) = (found, 0, 0);
            }
            let Some(found) = bit_from(self.minutes, minute) else {
                (hour, minute, second) = (hour + 1, 0, 0);
                continue;
            };
            if found > minute {
                (minute, second) = (found, 0);
            }
            let Some(second) = bit_from(self.seconds, second) else {
                // Minute 60 is in no set, so the next iteration carries into the hour.
                (minute, second) = (minute + 1, 0);
                continue;
            };
            return Some(hour * 3600 + minute * 60 + second);
        }
    }

    // The number of matching seconds of a day before `second`.
    fn times_before(&self, second: i64) -> u64 {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let hours = u64::from(self.hours);
        let (a_minute, an_hour) = (ones_below(self.seconds, 60), ones_below(self.minutes, 60));
        let mut count = ones_below(hours, hour) * an_hour * a_minute;
        if hours & (1 << hour) != 0 {
            count += ones_below(self.minutes, minute) * a_minute;
            if self.minutes & (1 << minute) != 0 {
                count += ones_below(self.seconds, second);
            }
        }
        count
    }
}

fn bit_from(mask: u64, from: i64) -> Option<i64> {
    let mask = mask & u64::MAX.checked_shl(u32::try_from(from).ok()?)?;
    (mask != 0).then(|| i64::from(mask.trailing_zeros()))
}

fn ones_below(mask: u64, bit: i64) -> u64 {
    u64::from((mask & ((1 << bit) - 1)).count_ones())
}

fn date_of(day: i64) -> Option<Date> {
    let time = Timestamp::from_second(day.checked_mul(DAY)?).ok()?;
    Some(Offset::UTC.to_datetime(time).date())
}

fn day_of(date: Date) -> i64 {
    // Every midnight of the calendar is a valid instant in UTC; only the last hours of its last day are not.
    Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).map_or(i64::MAX / DAY, |time| time.as_second().div_euclid(DAY))
}

fn next_month(first: Date) -> Option<Date> {
    match first.month() {
        12 => Date::new(first.year().checked_add(1)?, 1, 1).ok(),
        month => Date::new(first.year(), month + 1, 1).ok(),
    }
}
