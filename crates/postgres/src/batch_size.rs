//! How many schedules one firing step handles: fewer after a timeout, more again after a run of successes.
//!
//! A step that is too large for its time limit would be too large the next time as well. So each timeout halves the
//! next step, down to one occurrence of one schedule, and each run of successes doubles it.

use std::sync::{Mutex, PoisonError};

use orchestrix_store::Schedule;

/// Jobs and payload bytes after which a step takes no further schedule: a leader's transaction must be short.
const STEP_JOBS: usize = 5_000;
const STEP_BYTES: usize = 32 * 1024 * 1024;
/// How often a step can be halved: 500 schedules become one.
const MAX_HALVINGS: u32 = 9;
/// Steps that have to succeed before the next one is larger.
const SUCCESSES_TO_GROW: u32 = 8;

/// Adapts the size of steps to what the server can do in time.
#[derive(Debug, Default)]
pub(crate) struct BatchSizer(Mutex<State>);

#[derive(Debug, Default, Clone, Copy)]
struct State {
    halvings: u32,
    successes: u32,
}

/// The limits of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchLimits {
    halvings: u32,
}

impl BatchSizer {
    /// The limits of the next step.
    pub(crate) fn limits(&self) -> BatchLimits {
        BatchLimits { halvings: self.update(|_| ()).halvings }
    }

    /// Notes that the server cut a step off.
    pub(crate) fn timed_out(&self) {
        self.update(|state| *state = State { halvings: (state.halvings + 1).min(MAX_HALVINGS), successes: 0 });
    }

    /// Notes that a step succeeded.
    pub(crate) fn succeeded(&self) {
        self.update(|state| {
            state.successes += 1;
            if state.successes >= SUCCESSES_TO_GROW {
                *state = State { halvings: state.halvings.saturating_sub(1), successes: 0 };
            }
        });
    }

    fn update(&self, update: impl FnOnce(&mut State)) -> State {
        // A panic cannot leave two numbers inconsistent.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        update(&mut state);
        *state
    }
}

impl BatchLimits {
    fn scale(self, full: usize) -> usize {
        (full >> self.halvings).max(1)
    }

    /// Schedules, out of `limit` requested.
    pub(crate) fn schedules(self, limit: i64) -> i64 {
        (limit >> self.halvings).max(1)
    }

    /// Jobs after which no further schedule is taken.
    pub(crate) fn jobs(self) -> usize {
        self.scale(STEP_JOBS)
    }

    /// Payload bytes after which no further schedule is taken.
    pub(crate) fn bytes(self) -> usize {
        self.scale(STEP_BYTES)
    }

    /// Occurrences of one schedule whose jobs have payloads of this many bytes.
    pub(crate) fn occurrences(self, payload_bytes: usize) -> usize {
        (self.bytes() / payload_bytes.max(1)).clamp(1, self.scale(Schedule::MAX_FIRED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_halve_a_step_down_to_one_and_runs_of_successes_double_it() {
        let sizer = BatchSizer::default();
        let full = sizer.limits();
        assert_eq!((full.schedules(500), full.jobs(), full.bytes(), full.occurrences(10)), (500, 5_000, 32 << 20, 100));
        sizer.timed_out();
        let half = sizer.limits();
        assert_eq!((half.schedules(500), half.jobs(), half.bytes(), half.occurrences(10)), (250, 2_500, 16 << 20, 50));
        for _ in 0..20 {
            sizer.timed_out();
        }
        let least = sizer.limits();
        assert_eq!((least.schedules(500), least.schedules(1), least.occurrences(1 << 20)), (1, 1, 1));
        for _ in 0..SUCCESSES_TO_GROW - 1 {
            sizer.succeeded();
        }
        assert_eq!(sizer.limits(), least, "one success short");
        for _ in 0..SUCCESSES_TO_GROW * MAX_HALVINGS {
            sizer.succeeded();
        }
        assert_eq!(sizer.limits(), full);
    }

    #[test]
    fn large_payloads_limit_the_occurrences_of_one_step() {
        let full = BatchSizer::default().limits();
        assert_eq!((full.occurrences(0), full.occurrences(1 << 20), full.occurrences(64 << 20)), (100, 32, 1));
    }
}
