//! The back-off between the attempts of a job.

use std::time::Duration;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use crate::FieldError;

/// Exponential back-off with a cap and jitter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The delay after the first failed attempt.
    pub base: Duration,
    /// The factor by which each further delay grows.
    pub multiplier: f64,
    /// The longest delay, before jitter.
    pub max: Duration,
    /// The largest random addition, as a share of the delay from 0 to 1.
    pub jitter: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl RetryPolicy {
    /// One second, doubling up to an hour, with 10 % jitter.
    pub const DEFAULT: Self =
        Self { base: Duration::from_secs(1), multiplier: 2.0, max: Duration::from_secs(3600), jitter: 0.1 };

    /// The longest delay that a policy may have.
    pub const MAX_DELAY: Duration = Duration::from_secs(30 * 24 * 3600);

    /// The delay after the `failed`-th failed attempt, counted from 1: `base × multiplier^(failed−1)`, capped at
    /// `max`, plus a random share of it up to `jitter`.
    pub fn delay(&self, failed: u16, random: &mut (impl Rng + ?Sized)) -> Duration {
        let exponent = i32::from(failed.max(1)) - 1;
        let delay = (self.base.as_secs_f64() * self.multiplier.powi(exponent)).min(self.max.as_secs_f64());
        Duration::from_secs_f64(delay * (1.0 + self.jitter * random.random::<f64>()))
    }

    pub(crate) fn check(&self, errors: &mut Vec<FieldError>) {
        let mut bad = |field: &str, message: String| errors.push(FieldError::new(format!("retry.{field}"), message));
        if self.base > Self::MAX_DELAY {
            bad("baseSeconds", format!("must be at most {}", Self::MAX_DELAY.as_secs()));
        }
        if self.max > Self::MAX_DELAY || self.max < self.base {
            bad("maxSeconds", format!("must be from baseSeconds to {}", Self::MAX_DELAY.as_secs()));
        }
        if !(1.0..=100.0).contains(&self.multiplier) {
            bad("multiplier", "must be from 1 to 100".into());
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            bad("jitter", "must be from 0 to 1".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{SeedableRng, rngs::SmallRng};

    use super::*;

    #[test]
    fn the_default_doubles_from_one_second_up_to_an_hour() {
        let policy = RetryPolicy { jitter: 0.0, ..RetryPolicy::default() };
        let mut random = SmallRng::seed_from_u64(0);
        let waits: Vec<u64> = [1, 2, 3, 12, 13, 500].map(|n| policy.delay(n, &mut random).as_secs()).into();
        assert_eq!(waits, [1, 2, 4, 2048, 3600, 3600]);
    }

    proptest! {
        #[test]
        fn a_delay_is_between_the_plain_delay_and_its_jitter(
            base in 0u64..1000, multiplier in 1.0f64..100.0, jitter in 0.0f64..=1.0, n in 1u16..=u16::MAX, seed: u64,
        ) {
            let policy = RetryPolicy {
                base: Duration::from_millis(base), multiplier, max: Duration::from_secs(60).max(Duration::from_millis(base)), jitter,
            };
            let mut random = SmallRng::seed_from_u64(seed);
            let plain = RetryPolicy { jitter: 0.0, ..policy }.delay(n, &mut random);
            let delay = policy.delay(n, &mut random);
            prop_assert!(plain <= policy.max);
            prop_assert!(delay >= plain && delay <= plain.mul_f64(1.0 + jitter) + Duration::from_nanos(2));
        }
    }
}
