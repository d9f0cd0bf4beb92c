//! A token bucket: the rate limiter of keys, failed attempts and WebSocket messages.

use std::time::{Duration, Instant};

use orchestrix_core::RateLimit;

/// A bucket that refills at the limit's rate, up to its burst.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    limit: RateLimit,
    available: f64,
    refilled_at: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub(crate) fn new(limit: RateLimit, now: Instant) -> Self {
        Self { limit, available: f64::from(limit.burst()), refilled_at: now }
    }

    pub(crate) const fn limit(&self) -> RateLimit {
        self.limit
    }

    fn per_second(&self) -> f64 {
        f64::from(self.limit.count()) / self.limit.per().as_secs_f64()
    }

    fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.refilled_at).as_secs_f64();
        self.available = (self.available + elapsed * self.per_second()).min(f64::from(self.limit.burst()));
        // Concurrent callers read the clock before they take the lock, so `now` may go back.
        self.refilled_at = self.refilled_at.max(now);
    }

    /// Takes one token, or returns how long until there is one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.take_many(1, now)
    }

    /// Takes several tokens at once, or none. More than the burst count as the burst.
    pub(crate) fn take_many(&mut self, count: u32, now: Instant) -> Result<(), Duration> {
        let count = f64::from(count.min(self.limit.burst()));
        self.check_for(count, now)?;
        self.available -= count;
        Ok(())
    }

    /// As [`Self::take`], without taking the token.
    pub(crate) fn check(&mut self, now: Instant) -> Result<(), Duration> {
        self.check_for(1.0, now)
    }

    fn check_for(&mut self, count: f64, now: Instant) -> Result<(), Duration> {
        self.refill(now);
        if self.available >= count {
            return Ok(());
        }
        Err(Duration::from_secs_f64((count - self.available) / self.per_second()))
    }

    /// The tokens in the bucket.
    pub(crate) fn available(&mut self, now: Instant) -> f64 {
        self.refill(now);
        self.available
    }

    pub(crate) fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.available >= f64::from(self.limit.burst())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_grants_the_burst_at_once_and_then_the_rate() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(RateLimit::new(10, Duration::from_secs(5), 3).unwrap(), start);
        assert!(bucket.is_full(start));
        for _ in 0..3 {
            bucket.take(start).unwrap();
        }
        let wait = bucket.take(start).unwrap_err();
        assert!((wait.as_secs_f64() - 0.5).abs() < 0.001, "{wait:?}");
        let mut taken = 0;
        for tenth in 0..100 {
            taken += usize::from(bucket.take(start + Duration::from_millis(100 * tenth)).is_ok());
        }
        assert!((18..=20).contains(&taken), "two tokens a second for ten seconds, not {taken}");
        assert!(bucket.is_full(start + Duration::from_secs(60)));
    }

    #[test]
    fn several_tokens_are_taken_together_or_not_at_all() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(RateLimit::new(10, Duration::from_secs(1), 30).unwrap(), start);
        bucket.take_many(25, start).unwrap();
        let wait = bucket.take_many(10, start).unwrap_err();
        assert!((wait.as_secs_f64() - 0.5).abs() < 0.001, "{wait:?}");
        bucket.take_many(5, start).unwrap();
        // More than the burst counts as the burst.
        bucket.take_many(100, start + Duration::from_secs(4)).unwrap();
        assert!(bucket.take(start + Duration::from_secs(4)).is_err());
    }

    #[test]
    fn a_clock_that_goes_back_adds_no_tokens_and_is_not_counted_twice() {
        let start = Instant::now() + Duration::from_secs(60);
        let mut bucket = TokenBucket::new(RateLimit::new(1, Duration::from_secs(1), 2).unwrap(), start);
        for _ in 0..2 {
            bucket.take(start).unwrap();
        }
        // Concurrent callers read the clock before they take the lock.
        for back in [0, 1, 30, 60] {
            let wait = bucket.take(start - Duration::from_secs(back)).unwrap_err();
            assert_eq!(wait, Duration::from_secs(1), "{back} s back");
        }
        let wait = bucket.take(start + Duration::from_millis(500)).unwrap_err();
        assert!((wait.as_secs_f64() - 0.5).abs() < 0.001, "{wait:?}");
        bucket.take(start + Duration::from_secs(1)).unwrap();
        bucket.take(start + Duration::from_secs(1)).unwrap_err();
    }

    #[test]
    fn an_idle_bucket_holds_no_more_than_the_burst() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(RateLimit::new(1, Duration::from_secs(1), 2).unwrap(), start);
        let years = start + Duration::from_secs(100 * 365 * 24 * 3600);
        for at in [start, years] {
            bucket.take(at).unwrap();
            bucket.take(at).unwrap();
            assert_eq!(bucket.take(at).unwrap_err(), Duration::from_secs(1));
        }
    }
}
