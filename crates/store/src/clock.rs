//! The clock of stores without a database server, and arithmetic with times.
//!
//! Stores keep microseconds, so a clock returns nothing finer: a time equals its stored value.

use std::{
    fmt,
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use orchestrix_core::Timestamp;

/// A clock with whole microseconds.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        cut(Timestamp::now())
    }
}

/// A clock that only moves when a test advances it.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that starts at `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.as_microsecond()))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        // The closure always returns `Some`, so the update cannot fail.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| Some(now.saturating_add(micros)));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.0.load(Ordering::SeqCst)).unwrap_or(Timestamp::MAX)
    }
}

/// Truncates to whole microseconds.
pub fn cut(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

/// Truncates to whole milliseconds, as every store does with delays, leases and timeouts.
pub fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// `time` plus `by`, saturating.
pub fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(whole_millis(by)).map_or(Timestamp::MAX, cut)
}

/// `time` minus `by`, saturating.
pub fn earlier(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_sub(by).map_or(Timestamp::MIN, cut)
}

/// The time from `now` to `then`, or zero if `then` has passed.
pub fn until(now: Timestamp, then: Timestamp) -> Duration {
    then.duration_since(now).try_into().unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_advanced() {
        let clock = ManualClock::new(Timestamp::UNIX_EPOCH);
        assert_eq!(clock.now(), clock.now());
        clock.advance(Duration::from_millis(1500));
        assert_eq!(clock.now().as_millisecond(), 1500);
    }

    #[test]
    fn clocks_return_whole_microseconds() {
        assert_eq!(SystemClock.now().as_nanosecond() % 1000, 0);
        let clock = ManualClock::new("2026-01-01T00:00:00.123456789Z".parse().expect("a time"));
        assert_eq!(clock.now().to_string(), "2026-01-01T00:00:00.123456Z");
    }

    #[test]
    fn time_arithmetic_saturates() {
        assert_eq!(later(Timestamp::UNIX_EPOCH, Duration::MAX), Timestamp::MAX);
        assert_eq!(earlier(Timestamp::UNIX_EPOCH, Duration::MAX), Timestamp::MIN);
        assert_eq!(until(Timestamp::MAX, Timestamp::UNIX_EPOCH), Duration::ZERO);
    }
}
