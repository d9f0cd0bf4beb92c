//! Which days of a month an expression matches: by date, by weekday, or by both.
//!
//! The days of a month are one bit mask (bit 1 is the first), so a search steps over months, not over days.

use jiff::civil::Date;

/// The two day fields of an expression.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Days {
    /// Days of the month, bit 1 to bit 31.
    pub(super) dates: u32,
    /// Days from the end: bit 0 is the last day, bit 1 the one before.
    pub(super) from_last: u32,
    /// The last day from Monday to Friday.
    pub(super) last_workday: bool,
    /// Dates whose nearest day from Monday to Friday matches, bit 1 to bit 31.
    pub(super) near_dates: u32,
    /// The day-of-month field starts with `*` or is `?`.
    pub(super) any_date: bool,
    /// Weekdays; bit 0 is Sunday.
    pub(super) weekdays: u8,
    /// The first to the fifth such weekday of a month.
    pub(super) nth_weekdays: [u8; 5],
    /// The last such weekday of a month.
    pub(super) last_weekdays: u8,
    /// The day-of-week field starts with `*` or is `?`.
    pub(super) any_weekday: bool,
}

impl Days {
    /// The matching days of the month that begins with `first`.
    ///
    /// As in classic cron, if both fields are restricted either may match. A field that starts with `*` (also `*/2`)
    /// does not count as restricted; then both must match.
    pub(super) fn of_month(&self, first: Date) -> u32 {
        let month = Month { length: first.days_in_month(), first: first.weekday().to_sunday_zero_offset() };
        let (by_date, by_weekday) = (self.by_date(month), self.by_weekday(month));
        if self.any_date || self.any_weekday { by_date & by_weekday } else { by_date | by_weekday }
    }

    fn by_date(&self, month: Month) -> u32 {
        let mut mask = self.dates & month.all();
        for back in ones(self.from_last) {
            if back < month.length {
                mask |= 1 << (month.length - back);
            }
        }
        if self.last_workday {
            mask |= 1 << month.nearest_workday(month.length);
        }
        for day in ones(self.near_dates & month.all()) {
            mask |= 1 << month.nearest_workday(day);
        }
        mask
    }

    fn by_weekday(&self, month: Month) -> u32 {
        let mut mask = 0;
        for day in 1..=month.length {
            let weekday = 1 << month.weekday(day);
            let nth = self.nth_weekdays[usize::from((day - 1).unsigned_abs() / 7)];
            let last = if day + 7 > month.length { self.last_weekdays } else { 0 };
            if (self.weekdays | nth | last) & weekday != 0 {
                mask |= 1 << day;
            }
        }
        mask
    }
}

#[derive(Clone, Copy)]
struct Month {
    length: i8,
    first: i8,
}

impl Month {
    fn all(self) -> u32 {
        u32::MAX >> (31 - self.length) & !1
    }

    fn weekday(self, day: i8) -> i8 {
        (self.first + day - 1) % 7
    }

    // Stays within the month: for a 1st on a Saturday, the nearest workday is Monday the 3rd.
    fn nearest_workday(self, day: i8) -> i8 {
        match self.weekday(day) {
            6 if day == 1 => 3,
            6 => day - 1,
            0 if day == self.length => day - 2,
            0 => day + 1,
            _ => day,
        }
    }
}

fn ones(mask: u32) -> impl Iterator<Item = i8> {
    (0..32).filter(move |bit| mask & (1 << bit) != 0)
}
