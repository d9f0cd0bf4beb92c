//! Jitter, which keeps the nodes of a fleet from acting in step.

use std::time::Duration;

/// A random duration between 80 % and 100 % of `pause`.
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.8..=1.0))
}

/// Growing pauses between failures.
#[derive(Debug)]
pub(crate) struct BackOff(Duration);

impl BackOff {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(5);

    pub(crate) const fn new() -> Self {
        Self(Self::FIRST)
    }

    /// The pause after this failure.
    pub(crate) fn failed(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (self.0 * 2).min(Self::LONGEST);
        jittered(pause)
    }

    /// Starts again with the first pause.
    pub(crate) fn succeeded(&mut self) {
        self.0 = Self::FIRST;
    }
}
