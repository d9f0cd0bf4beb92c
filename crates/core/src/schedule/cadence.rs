//! The nominal times of a schedule: of a cron expression in a time zone, or of an interval.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Cron, ZoneName,
    instants::{Instants, second_of},
};
use crate::{FieldError, Invalid, Timestamp};

/// When a schedule is due, repeatedly.
///
/// ```
/// use orchestrix_core::{Cadence, Timestamp};
///
/// let cadence = Cadence::cron("30 2 * * *", "America/New_York")?;
/// // On 8 March 2026 the clocks skipped 02:30: they went from 02:00 to 03:00, which is 07:00 UTC.
/// let after: Timestamp = "2026-03-08T00:00:00Z".parse()?;
/// assert_eq!(cadence.next_after(after), Some("2026-03-08T07:00:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cadence {
    /// At the times that a cron expression matches in a time zone.
    Cron {
        /// The expression.
        cron: Cron,
        /// The time zone.
        zone: ZoneName,
    },
    /// At a fixed interval, counted from the Unix epoch: `epoch + n × interval`, whenever the schedule was created.
    Every {
        /// The interval.
        interval: Duration,
    },
}

impl Cadence {
    /// The shortest interval.
    pub const MIN_INTERVAL: Duration = Duration::from_secs(1);
    /// The longest interval: ten years.
    pub const MAX_INTERVAL: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

    /// A cron expression in a time zone. The error names both fields if both are bad.
    pub fn cron(cron: &str, zone: &str) -> Result<Self, Invalid> {
        match (Cron::new(cron), ZoneName::new(zone)) {
            (Ok(cron), Ok(zone)) => Ok(Self::Cron { cron, zone }),
            (cron, zone) => Err(Invalid { errors: cron.err().into_iter().chain(zone.err()).collect() }),
        }
    }

    /// A fixed interval.
    pub fn every(interval: Duration) -> Result<Self, FieldError> {
        let cadence = Self::Every { interval };
        cadence.check().map(|()| cadence)
    }

    pub(super) fn check(&self) -> Result<(), FieldError> {
        match self {
            Self::Cron { cron, .. } if !cron.ever_matches() => {
                Err(FieldError::new("cron", "never matches: no year has such a day"))
            }
            Self::Cron { .. } => Ok(()),
            Self::Every { interval } if !(Self::MIN_INTERVAL..=Self::MAX_INTERVAL).contains(interval) => {
                Err(FieldError::new("everySeconds", format!("must be from 1 to {}", Self::MAX_INTERVAL.as_secs())))
            }
            // Stores keep microseconds: a finer interval would drift away from the stored times.
            Self::Every { interval } if interval.subsec_nanos() % 1000 != 0 => {
                Err(FieldError::new("everySeconds", "may have at most six decimals"))
            }
            Self::Every { .. } => Ok(()),
        }
    }

    /// The first nominal time strictly after `after`, or `None` if there is none within fifty years.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        self.after(after).next()
    }

    /// Every nominal time strictly after `after`, in order.
    pub fn after(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        let (cron, every) = match self {
            Self::Cron { cron, zone } => (Instants::after(cron, zone.zone(), after), None),
            Self::Every { interval } => {
                let step = nanos(*interval);
                let first = intervals_since_epoch(after, step) + 1;
                (None, Some((first..).map_while(move |n| Timestamp::from_nanosecond(n.checked_mul(step)?).ok())))
            }
        };
        cron.into_iter().flatten().chain(every.into_iter().flatten())
    }

    /// Up to `limit` nominal times from `from` (inclusive) to `to` (exclusive).
    pub fn between(&self, from: Timestamp, to: Timestamp, limit: usize) -> Vec<Timestamp> {
        self.after(just_before(from)).take_while(|time| *time < to).take(limit).collect()
    }

    /// Whether `time` is a nominal time.
    pub fn contains(&self, time: Timestamp) -> bool {
        self.next_after(just_before(time)) == Some(time)
    }

    /// The number of nominal times after `after` and up to and including `until`. Costs a step per month, not per
    /// time.
    pub fn count(&self, after: Timestamp, until: Timestamp) -> u64 {
        if until <= after {
            return 0;
        }
        match self {
            Self::Cron { cron, zone } => {
                Instants::after(cron, zone.zone(), after).map_or(0, |instants| instants.count_until(until))
            }
            Self::Every { interval } => {
                let step = nanos(*interval);
                u64::try_from(intervals_since_epoch(until, step) - intervals_since_epoch(after, step))
                    .unwrap_or(u64::MAX)
            }
        }
    }

    /// The latest time after which `keep` nominal times lie up to and including `until`, but not before `after`.
    pub(super) fn start_of_last(&self, after: Timestamp, until: Timestamp, keep: u64) -> Timestamp {
        if self.count(after, until) <= keep {
            return after;
        }
        match self {
            // Nominal times are whole seconds, so from one second to the next the count drops by one at most, and a
            // binary search finds the exact second.
            Self::Cron { .. } => {
                let (mut low, mut high) = (second_of(after), second_of(until));
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    let time = Timestamp::from_second(middle).unwrap_or(until);
                    if self.count(time, until) > keep {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                Timestamp::from_second(high).unwrap_or(until)
            }
            Self::Every { interval } => {
                let step = nanos(*interval);
                let time = (intervals_since_epoch(until, step) - i128::from(keep)) * step;
                Timestamp::from_nanosecond(time).unwrap_or(after)
            }
        }
    }
}

fn nanos(interval: Duration) -> i128 {
    // `check` refuses zero; this keeps an unchecked one from dividing by zero.
    i128::try_from(interval.as_nanos()).unwrap_or(i128::MAX).max(1)
}

fn intervals_since_epoch(time: Timestamp, step: i128) -> i128 {
    time.as_nanosecond().div_euclid(step)
}

/// The instant before `time`, which turns an inclusive start into an exclusive one.
pub(super) fn just_before(time: Timestamp) -> Timestamp {
    time.checked_sub(Duration::from_nanos(1)).unwrap_or(Timestamp::MIN)
}
