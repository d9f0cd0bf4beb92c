//! InProcessApi times of a time zone. Uses the built-in time zone database, as schedules do.

use jiff::{
    Zoned,
    tz::{TimeZone, TimeZoneDatabase},
};
use orchestrix_core::{Timestamp, ZoneName};

use crate::{output::table, times};

/// Converts times to a time zone.
pub(crate) struct ZoneClock {
    name: ZoneName,
    zone: TimeZone,
}

impl ZoneClock {
    /// `None` for UTC, which is always shown.
    pub(crate) fn new(name: &ZoneName) -> Option<Self> {
        let zone = TimeZoneDatabase::bundled().get(name.as_str()).ok()?;
        (*name != ZoneName::utc()).then(|| Self { name: name.clone(), zone })
    }

    fn at(&self, time: Timestamp) -> Zoned {
        time.to_zoned(self.zone.clone())
    }

    /// The local time in ISO 8601, with its offset.
    pub(crate) fn iso(&self, time: Timestamp) -> String {
        self.at(time).strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string()
    }

    /// The local time with the day of the week and the zone's abbreviation.
    pub(crate) fn readable(&self, time: Timestamp) -> String {
        self.at(time).strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string()
    }
}

/// A table of times: in UTC, in the zone if there is one, and relative to now.
pub(crate) fn times_table(times: &[Timestamp], clock: Option<&ZoneClock>, now: Timestamp) -> String {
    match clock {
        Some(clock) => table(
            ["UTC", clock.name.as_str(), "FROM NOW"],
            times.iter().map(|time| [time.to_string(), clock.readable(*time), times::relative(*time, now)]),
        ),
        None => table(["UTC", "FROM NOW"], times.iter().map(|time| [time.to_string(), times::relative(*time, now)])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_converted_to_the_zone() {
        let clock = ZoneClock::new(&ZoneName::new("Europe/Berlin").unwrap()).unwrap();
        let time: Timestamp = "2026-03-29T01:00:00Z".parse().unwrap();
        assert_eq!(clock.iso(time), "2026-03-29T03:00:00+02:00");
        assert_eq!(clock.readable(time), "Sun 2026-03-29 03:00:00 CEST");
        assert!(ZoneClock::new(&ZoneName::utc()).is_none());
    }
}
