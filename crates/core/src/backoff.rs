//! Exponential back-off between retries of one call.
//!
//! This is for code that repeats a call until it succeeds: a claim, a reconnect, a poll.
//! The back-off between the attempts of a job is [`RetryPolicy`](crate::RetryPolicy), which every job carries.

use std::time::Duration;

use rand::{Rng, RngExt};

/// Delays that double from `first` to `longest` until [`reset`](Backoff::reset).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Starts at `first`, or at `longest` where that is shorter.
    pub fn new(first: Duration, longest: Duration) -> Self {
        let first = first.min(longest);
        Self { first, longest, next: first }
    }

    /// Returns the delay before the next retry and doubles the one after it.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = delay.saturating_mul(2).min(self.longest);
        delay
    }

    /// Like [`next_delay`](Backoff::next_delay), shortened by up to a quarter, so that a fleet does not retry in step.
    pub fn next_jittered(&mut self, rng: &mut impl Rng) -> Duration {
        self.next_delay().mul_f64(rng.random_range(0.75..=1.0))
    }

    /// Starts over from the first delay. Call it after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn delays_double_up_to_the_longest_and_start_over_after_a_reset() {
        let mut backoff = Backoff::new(millis(100), millis(350));
        assert_eq!([(); 4].map(|()| backoff.next_delay()), [100, 200, 350, 350].map(millis));
        backoff.reset();
        assert_eq!(backoff.next_delay(), millis(100));
    }

    #[test]
    fn the_first_delay_is_never_longer_than_the_longest() {
        let mut backoff = Backoff::new(millis(100), millis(30));
        assert_eq!([(); 2].map(|()| backoff.next_delay()), [30, 30].map(millis));
    }

    #[test]
    fn jitter_shortens_a_delay_by_a_quarter_at_most() {
        let mut backoff = Backoff::new(millis(100), millis(800));
        for plain in [100, 200, 400, 800, 800] {
            let delay = backoff.next_jittered(&mut rand::rng());
            assert!((millis(plain * 3 / 4)..=millis(plain)).contains(&delay), "{delay:?} for {plain} ms");
        }
    }
}
