//! The state of a job together with its attempt budget: what the end of an attempt leads to.
//!
//! [`state`](crate::state) says which transitions exist; this module chooses among them when an attempt ends.
//!
//! | the attempt | leads to |
//! |---|---|
//! | completed | `completed`, even after a cancel request |
//! | ended in any other way after a cancel request | `cancelled` |
//! | failed or timed out, budget left | `retrying` |
//! | failed for good, or used the last attempt | `dead` |
//! | lost its lease | `pending`; `dead` if the budget is used or in a crash loop |
//! | was released | `pending`, costs no attempt |
//! | was snoozed | `scheduled`, costs no attempt |
//!
//! `attempts` counts used attempts and changes only when an attempt ends. A running attempt has the number
//! `attempts + 1`, so releasing or snoozing a job never has to take a count back.

use crate::{AttemptOutcome, Event, IllegalTransition, JobState};

/// Whether a failed attempt may be retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Another attempt may succeed.
    Retryable,
    /// Another attempt would fail the same way: the job dies.
    Fatal,
}

/// The part of a job that decides its transitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifecycle {
    /// The state.
    pub state: JobState,
    /// Attempts used. Never decreases.
    pub attempts: u16,
    /// The attempt budget. Only a redrive extends it.
    pub max_attempts: u16,
    /// Leases lost in a row by workers that had started the job.
    pub losses: u16,
    /// Whether the owner has been asked to stop.
    pub cancel_requested: bool,
}

impl Lifecycle {
    /// How many losses in a row count as a crash loop, by default.
    pub const CRASH_LOOP: u16 = 3;

    /// Applies an event other than the end of an attempt.
    pub fn apply(mut self, event: Event) -> Result<Self, IllegalTransition> {
        self.state = self.state.next(event)?;
        match event {
            Event::Cancel if self.state.is_leased() => self.cancel_requested = true,
            Event::Redrive => {
                self.max_attempts = self.max_attempts.max(self.attempts.saturating_add(1));
                self.losses = 0;
                self.cancel_requested = false;
            }
            _ => {}
        }
        Ok(self)
    }

    /// Ends the running attempt with `outcome`.
    ///
    /// `failure` matters for [`AttemptOutcome::Failed`] only. After `crash_loop` losses in a row the job dies.
    pub fn end(
        mut self,
        outcome: AttemptOutcome,
        failure: Failure,
        crash_loop: u16,
    ) -> Result<Self, IllegalTransition> {
        let started = self.state != JobState::Dispatched;
        // A dispatched job that no worker started has lost nothing but time.
        let costs = outcome.costs_an_attempt() && (started || outcome != AttemptOutcome::Lost);
        let attempts = self.attempts + u16::from(costs);
        let losses = match outcome {
            AttemptOutcome::Lost => self.losses + u16::from(started),
            // A release or a snooze says nothing about whether the job crashes its workers.
            AttemptOutcome::Released | AttemptOutcome::Snoozed => self.losses,
            _ => 0,
        };
        let exhausted = attempts >= self.max_attempts;
        let event = match outcome {
            AttemptOutcome::Completed => Event::Complete,
            AttemptOutcome::Cancelled => Event::ConfirmCancel,
            _ if self.cancel_requested => Event::ConfirmCancel,
            AttemptOutcome::Failed if exhausted || failure == Failure::Fatal => Event::Die,
            AttemptOutcome::TimedOut if exhausted => Event::Die,
            AttemptOutcome::Failed | AttemptOutcome::TimedOut => Event::BackOff,
            AttemptOutcome::Lost if started && (exhausted || losses >= crash_loop) => Event::Die,
            AttemptOutcome::Lost | AttemptOutcome::Released => Event::Requeue,
            AttemptOutcome::Snoozed => Event::Snooze,
        };
        self.state = self.state.next(event)?;
        self.attempts = attempts;
        self.losses = losses;
        self.cancel_requested = false;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Readiness;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Event(Event),
        End(AttemptOutcome, Failure),
    }

    fn readiness() -> impl Strategy<Value = Readiness> {
        prop_oneof![Just(Readiness::Blocked), Just(Readiness::Early), Just(Readiness::Ready)]
    }

    fn step() -> impl Strategy<Value = Step> {
        let event = prop_oneof![
            readiness().prop_map(Event::Release),
            readiness().prop_map(Event::Unblock),
            proptest::sample::select(vec![
                Event::Hold,
                Event::Promote,
                Event::Dispatch,
                Event::Claim,
                Event::Start,
                Event::Cancel,
                Event::Expire,
                Event::Redrive,
            ]),
        ];
        let end = (
            proptest::sample::select(AttemptOutcome::ALL.to_vec()),
            proptest::sample::select(vec![Failure::Retryable, Failure::Fatal]),
        );
        // Claims are drawn often, so that sequences reach the late states.
        prop_oneof![2 => event.prop_map(Step::Event), 2 => Just(Step::Event(Event::Claim)), 3 => end.prop_map(|(o, f)| Step::End(o, f))]
    }

    fn any_start() -> impl Strategy<Value = Lifecycle> {
        (
            proptest::sample::select(vec![
                JobState::Created,
                JobState::Blocked,
                JobState::Scheduled,
                JobState::Pending,
            ]),
            1u16..6,
        )
            .prop_map(|(state, max_attempts)| Lifecycle {
                state,
                attempts: 0,
                max_attempts,
                losses: 0,
                cancel_requested: false,
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        #[test]
        fn no_sequence_of_events_breaks_an_invariant(start in any_start(), steps in proptest::collection::vec(step(), 0..60)) {
            let mut job = start;
            for step in steps {
                let before = job;
                let after = match step {
                    Step::Event(event) => before.apply(event),
                    Step::End(outcome, failure) => before.end(outcome, failure, Lifecycle::CRASH_LOOP),
                };
                let Ok(after) = after else { continue };
                prop_assert!(after.attempts >= before.attempts, "attempts shrank");
                prop_assert!(after.attempts <= after.max_attempts, "attempts passed the budget");
                prop_assert!(after.max_attempts >= before.max_attempts, "the budget shrank");
                prop_assert!(before.state != JobState::Completed, "completed is final");
                if before.state.is_terminal() && after != before {
                    prop_assert!(matches!(step, Step::Event(Event::Redrive)), "only a redrive leaves {}", before.state);
                }
                if after.max_attempts > before.max_attempts {
                    prop_assert!(matches!(step, Step::Event(Event::Redrive)), "only a redrive extends the budget");
                }
                if after.state.is_leased() {
                    prop_assert!(after.attempts < after.max_attempts, "a lease needs an attempt left");
                } else {
                    prop_assert!(!after.cancel_requested, "only a leased job has a cancel request");
                }
                if let Step::End(AttemptOutcome::Released | AttemptOutcome::Snoozed, _) = step {
                    prop_assert_eq!(after.attempts, before.attempts);
                }
                if let Step::End(..) = step {
                    prop_assert!(before.state.is_leased(), "only an owned job's attempt can end");
                }
                job = after;
            }
        }
    }

    fn running(attempts: u16, max_attempts: u16) -> Lifecycle {
        Lifecycle { state: JobState::Running, attempts, max_attempts, losses: 0, cancel_requested: false }
    }

    #[test]
    fn three_losses_in_a_row_are_a_crash_loop() {
        let mut job = running(0, 100);
        for expected in [JobState::Pending, JobState::Pending, JobState::Dead] {
            job.state = JobState::Running;
            job = job.end(AttemptOutcome::Lost, Failure::Retryable, Lifecycle::CRASH_LOOP).expect("running");
            assert_eq!(job.state, expected);
        }
    }

    #[test]
    fn a_failure_between_losses_resets_the_crash_loop() {
        let mut job = running(0, 100);
        for outcome in [AttemptOutcome::Lost, AttemptOutcome::Lost, AttemptOutcome::Failed, AttemptOutcome::Lost] {
            job.state = JobState::Running;
            job = job.end(outcome, Failure::Retryable, Lifecycle::CRASH_LOOP).expect("running");
        }
        assert_eq!(job.state, JobState::Pending);
    }

    #[test]
    fn losing_a_dispatched_job_that_never_started_costs_no_attempt() {
        let job = Lifecycle { state: JobState::Dispatched, ..running(0, 1) };
        let job = job.end(AttemptOutcome::Lost, Failure::Retryable, 1).expect("dispatched");
        assert_eq!((job.state, job.attempts, job.losses), (JobState::Pending, 0, 0));
    }

    #[test]
    fn an_attempt_that_ends_after_a_cancel_request_cancels_the_job_unless_it_completed() {
        for outcome in AttemptOutcome::ALL {
            let job = running(0, 10).apply(Event::Cancel).expect("running");
            assert_eq!(job.state, JobState::Running);
            let job = job.end(outcome, Failure::Retryable, Lifecycle::CRASH_LOOP).expect("running");
            let expected = if outcome == AttemptOutcome::Completed { JobState::Completed } else { JobState::Cancelled };
            assert_eq!(job.state, expected, "{outcome}");
        }
    }

    #[test]
    fn redriving_an_exhausted_job_adds_one_attempt() {
        let dead = running(2, 3).end(AttemptOutcome::Failed, Failure::Retryable, 3).expect("running");
        assert_eq!((dead.state, dead.attempts), (JobState::Dead, 3));
        let again = dead.apply(Event::Redrive).expect("dead");
        assert_eq!((again.state, again.max_attempts), (JobState::Pending, 4));
    }
}
