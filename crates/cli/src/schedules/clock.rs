//! Times on the clocks of a zone, beside UTC. The zones are those that are built in, as for the schedules themselves.

use jiff::{
    Zoned,
    tz::{TimeZone, TimeZoneDatabase},
};
use orchestrix_core::{Timestamp, ZoneName};

use crate::{output::table, times};

/// The clocks of a zone.
pub(crate) struct Clock {
    name: ZoneName,
    zone: TimeZone,
}

impl Clock {
    /// None for UTC, which is shown anyway.
    pub(crate) fn of(name: &ZoneName) -> Option<Self> {
        let zone = TimeZoneDatabase::bundled().get(name.as_str()).ok()?;
        (*name != ZoneName::utc()).then(|| Self { name: name.clone(), zone })
    }

    fn at(&self, time: Timestamp) -> Zoned {
        time.to_zoned(self.zone.clone())
    }

    /// The time with the zone's offset.
    pub(crate) fn exact(&self, time: Timestamp) -> String {
        self.at(time).strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string()
    }

    /// The time as one reads it off a clock and a calendar.
    pub(crate) fn readable(&self, time: Timestamp) -> String {
        self.at(time).strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string()
    }
}

/// Times in UTC, on the clocks of a zone if there is one, and how far off they are.
pub(crate) fn times_table(times: &[Timestamp], clock: Option<&Clock>, now: Timestamp) -> String {
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
    fn times_are_shown_on_the_clocks_of_the_zone() {
        let clock = Clock::of(&ZoneName::new("Europe/Berlin").unwrap()).unwrap();
        let time: Timestamp = "2026-03-29T01:00:00Z".parse().unwrap();
        assert_eq!(clock.exact(time), "2026-03-29T03:00:00+02:00");
        assert_eq!(clock.readable(time), "Sun 2026-03-29 03:00:00 CEST");
        assert!(Clock::of(&ZoneName::utc()).is_none());
    }
}
