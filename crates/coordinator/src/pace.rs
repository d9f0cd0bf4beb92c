//! Pauses that keep a fleet out of step.

use std::time::Duration;

/// Between 80 % and all of `pause`.
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

    /// How long to wait after this failure.
    pub(crate) fn failed(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (self.0 * 2).min(Self::LONGEST);
        jittered(pause)
    }

    /// Begins anew.
    pub(crate) fn succeeded(&mut self) {
        self.0 = Self::FIRST;
    }
}
