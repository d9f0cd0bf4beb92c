//! How often something may be done: a bucket that fills with time.

use std::time::{Duration, Instant};

use orchestrix_core::RateLimit;

/// What is left of a limit.
#[derive(Debug)]
pub(crate) struct Bucket {
    limit: RateLimit,
    left: f64,
    at: Instant,
}

impl Bucket {
    /// A full one.
    pub(crate) fn new(limit: RateLimit, now: Instant) -> Self {
        Self { limit, left: f64::from(limit.burst()), at: now }
    }

    pub(crate) const fn limit(&self) -> RateLimit {
        self.limit
    }

    fn per_second(&self) -> f64 {
        f64::from(self.limit.count()) / self.limit.per().as_secs_f64()
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * self.per_second()).min(f64::from(self.limit.burst()));
        // Those who ask at the same time may come in any order.
        self.at = self.at.max(now);
    }

    /// Takes one, or says how long until there is one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.take_some(1, now)
    }

    /// The same of several, which are at most as many as there can be.
    pub(crate) fn take_some(&mut self, count: u32, now: Instant) -> Result<(), Duration> {
        let count = f64::from(count.min(self.limit.burst()));
        self.wait_for(count, now)?;
        self.left -= count;
        Ok(())
    }

    /// How long until there is one, without taking it.
    pub(crate) fn wait(&mut self, now: Instant) -> Result<(), Duration> {
        self.wait_for(1.0, now)
    }

    fn wait_for(&mut self, count: f64, now: Instant) -> Result<(), Duration> {
        self.fill(now);
        if self.left >= count {
            return Ok(());
        }
        Err(Duration::from_secs_f64((count - self.left) / self.per_second()))
    }

    /// How much is left.
    pub(crate) fn left(&mut self, now: Instant) -> f64 {
        self.fill(now);
        self.left
    }

    /// Whether nothing is missing from it.
    pub(crate) fn is_full(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.left >= f64::from(self.limit.burst())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_the_burst_at_once_and_the_rate_after_that() {
        let begun = Instant::now();
        let mut bucket = Bucket::new(RateLimit::new(10, Duration::from_secs(5), 3).unwrap(), begun);
        assert!(bucket.is_full(begun));
        for _ in 0..3 {
            bucket.take(begun).unwrap();
        }
        let wait = bucket.take(begun).unwrap_err();
        assert!((wait.as_secs_f64() - 0.5).abs() < 0.001, "{wait:?}");
        let mut taken = 0;
        for tenth in 0..100 {
            taken += usize::from(bucket.take(begun + Duration::from_millis(100 * tenth)).is_ok());
        }
        assert!((18..=20).contains(&taken), "two a second for ten seconds, not {taken}");
        assert!(bucket.is_full(begun + Duration::from_secs(60)));
    }

    #[test]
    fn several_are_taken_together_or_not_at_all() {
        let begun = Instant::now();
        let mut bucket = Bucket::new(RateLimit::new(10, Duration::from_secs(1), 30).unwrap(), begun);
        bucket.take_some(25, begun).unwrap();
        let wait = bucket.take_some(10, begun).unwrap_err();
        assert!((wait.as_secs_f64() - 0.5).abs() < 0.001, "{wait:?}");
        bucket.take_some(5, begun).unwrap();
        // More than there can ever be is all there can be.
        bucket.take_some(100, begun + Duration::from_secs(4)).unwrap();
        assert!(bucket.take(begun + Duration::from_secs(4)).is_err());
    }

    #[test]
    fn time_that_seems_to_go_back_gives_nothing_and_is_not_counted_twice() {
        let begun = Instant::now() + Duration::from_secs(60);
        let mut bucket = Bucket::new(RateLimit::new(1, Duration::from_secs(1), 2).unwrap(), begun);
        for _ in 0..2 {
            bucket.take(begun).unwrap();
        }
        // Those who ask at the same time come in any order: each looked at the clock before it took the lock.
        for back in [0, 1, 30, 60] {
            let wait = bucket.take(begun - Duration::from_secs(back)).unwrap_err();
            assert_eq!(wait, Duration::from_secs(1), "{back} s back");
        }
        let wait = bucket.take(begun + Duration::from_millis(500)).unwrap_err();
        assert!((wait.as_secs_f64() - 0.5).abs() < 0.001, "{wait:?}");
        bucket.take(begun + Duration::from_secs(1)).unwrap();
        bucket.take(begun + Duration::from_secs(1)).unwrap_err();
    }

    #[test]
    fn however_long_it_stands_it_holds_no_more_than_the_burst() {
        let begun = Instant::now();
        let mut bucket = Bucket::new(RateLimit::new(1, Duration::from_secs(1), 2).unwrap(), begun);
        let years = begun + Duration::from_secs(100 * 365 * 24 * 3600);
        for at in [begun, years] {
            bucket.take(at).unwrap();
            bucket.take(at).unwrap();
            assert_eq!(bucket.take(at).unwrap_err(), Duration::from_secs(1));
        }
    }
}
