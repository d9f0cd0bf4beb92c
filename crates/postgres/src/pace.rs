//! How much one step of firing takes on: less after one that the server cut off, and more again after a while.
//!
//! A step that is too much for its time would be too much the next time, and for ever. So each that failed halves what the next one may
//! hold, down to one occurrence of one schedule, and each run of those that did not doubles it.

use std::sync::{Mutex, PoisonError};

use orchestrix_store::Schedule;

/// Jobs and bytes of payload after which a step takes no further schedule: a leader's transaction is short.
const STEP_JOBS: usize = 5_000;
const STEP_BYTES: usize = 32 * 1024 * 1024;
/// How often a step can be halved: 500 schedules come to one.
const MOST_HALVINGS: u32 = 9;
/// Steps that have to succeed before the next are larger again.
const RUN: u32 = 8;

/// Where it stands.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<State>);

#[derive(Debug, Default, Clone, Copy)]
struct State {
    halvings: u32,
    succeeded: u32,
}

/// What a step may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    halvings: u32,
}

impl Pace {
    /// For the next step.
    pub(crate) fn share(&self) -> Share {
        Share { halvings: self.change(|_| ()).halvings }
    }

    /// A step was cut off.
    pub(crate) fn failed(&self) {
        self.change(|state| *state = State { halvings: (state.halvings + 1).min(MOST_HALVINGS), succeeded: 0 });
    }

    /// A step came to its end.
    pub(crate) fn succeeded(&self) {
        self.change(|state| {
            state.succeeded += 1;
            if state.succeeded >= RUN {
                *state = State { halvings: state.halvings.saturating_sub(1), succeeded: 0 };
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) -> State {
        // Two numbers are whole whatever happened to whoever held them.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        *state
    }
}

impl Share {
    fn of(self, most: usize) -> usize {
        (most >> self.halvings).max(1)
    }

    /// Schedules, of so many that were asked for.
    pub(crate) fn schedules(self, limit: i64) -> i64 {
        (limit >> self.halvings).max(1)
    }

    /// Jobs after which no further schedule is taken.
    pub(crate) fn jobs(self) -> usize {
        self.of(STEP_JOBS)
    }

    /// Bytes of payload after which no further schedule is taken.
    pub(crate) fn bytes(self) -> usize {
        self.of(STEP_BYTES)
    }

    /// Occurrences of one schedule whose jobs have payloads of so many bytes.
    pub(crate) fn occurrences(self, payload: usize) -> usize {
        (self.bytes() / payload.max(1)).clamp(1, self.of(Schedule::MAX_FIRED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_halve_a_step_down_to_one_and_runs_of_successes_double_it() {
        let pace = Pace::default();
        let whole = pace.share();
        assert_eq!(
            (whole.schedules(500), whole.jobs(), whole.bytes(), whole.occurrences(10)),
            (500, 5_000, 32 << 20, 100)
        );
        pace.failed();
        let half = pace.share();
        assert_eq!((half.schedules(500), half.jobs(), half.bytes(), half.occurrences(10)), (250, 2_500, 16 << 20, 50));
        for _ in 0..20 {
            pace.failed();
        }
        let least = pace.share();
        assert_eq!((least.schedules(500), least.schedules(1), least.occurrences(1 << 20)), (1, 1, 1));
        for _ in 0..RUN - 1 {
            pace.succeeded();
        }
        assert_eq!(pace.share(), least, "not yet");
        for _ in 0..RUN * MOST_HALVINGS {
            pace.succeeded();
        }
        assert_eq!(pace.share(), whole);
    }

    #[test]
    fn large_payloads_make_a_schedule_fire_fewer_at_once() {
        let whole = Pace::default().share();
        assert_eq!((whole.occurrences(0), whole.occurrences(1 << 20), whole.occurrences(64 << 20)), (100, 32, 1));
    }
}
