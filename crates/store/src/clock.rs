//! Where a store without a database of its own takes its time from.
//!
//! Stores keep microseconds, so a clock gives nothing finer: two times that look alike when read back are alike.

use std::{
    fmt,
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use orchestrix_core::Timestamp;

/// Tells the time, in whole microseconds.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        cut(Timestamp::now())
    }
}

/// A clock that stands still until it is told to move, for tests that wait for nothing.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.as_microsecond()))
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        // The closure always answers, so the update cannot be refused.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| Some(now.saturating_add(micros)));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.0.load(Ordering::SeqCst)).unwrap_or(Timestamp::MAX)
    }
}

/// Cuts off what is finer than a microsecond.
pub fn cut(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

/// Delays, leases and timeouts count in whole milliseconds, here as in every database.
pub fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// The time `by` later; the end of time if there is none.
pub fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(whole_millis(by)).map_or(Timestamp::MAX, cut)
}

/// The time `by` earlier; the beginning of time if there is none.
pub fn earlier(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_sub(by).map_or(Timestamp::MIN, cut)
}

/// How long from `now` to `then`; zero if it has passed.
pub fn until(now: Timestamp, then: Timestamp) -> Duration {
    then.duration_since(now).try_into().unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = ManualClock::new(Timestamp::UNIX_EPOCH);
        assert_eq!(clock.now(), clock.now());
        clock.advance(Duration::from_millis(1500));
        assert_eq!(clock.now().as_millisecond(), 1500);
    }

    #[test]
    fn clocks_give_whole_microseconds() {
        assert_eq!(SystemClock.now().as_nanosecond() % 1000, 0);
        let clock = ManualClock::new("2026-01-01T00:00:00.123456789Z".parse().expect("a time"));
        assert_eq!(clock.now().to_string(), "2026-01-01T00:00:00.123456Z");
    }

    #[test]
    fn sums_stop_at_the_ends_of_time() {
        assert_eq!(later(Timestamp::UNIX_EPOCH, Duration::MAX), Timestamp::MAX);
        assert_eq!(earlier(Timestamp::UNIX_EPOCH, Duration::MAX), Timestamp::MIN);
        assert_eq!(until(Timestamp::MAX, Timestamp::UNIX_EPOCH), Duration::ZERO);
    }
}
