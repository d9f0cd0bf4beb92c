//! Jitter, which keeps the nodes of a fleet from acting in step.

use std::time::Duration;

use orchestrix_core::Backoff;

/// A random duration between 80 % and 100 % of `pause`.
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.8..=1.0))
}

/// The back-off of a coordinator's repeated calls to the store.
pub(crate) fn retry_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(100), Duration::from_secs(5))
}
