//! The leader's services, one file each: a bounded step, and when the next one is due.

mod advance_operations;
mod expire_jobs;
mod fire_schedules;
mod fold_depths;
mod forget_members;
mod promote_jobs;
mod prune_history;
mod publish_gauges;
mod reap_leases;
mod time_out_attempts;
mod unblock_jobs;
mod vacuum_tables;

use std::time::Duration;

use orchestrix_store::SweepResult;

use crate::{
    jitter::jittered,
    service::{Service, StepResult},
};

pub(crate) fn all() -> Vec<Box<dyn Service>> {
    vec![
        Box::new(promote_jobs::PromoteJobs),
        Box::new(fire_schedules::FireSchedules),
        Box::new(expire_jobs::ExpireJobs),
        Box::new(unblock_jobs::UnblockJobs),
        Box::new(reap_leases::ReapLeases),
        Box::new(time_out_attempts::TimeOutAttempts),
        Box::new(forget_members::ForgetMembers),
        Box::new(fold_depths::FoldDepths),
        Box::new(prune_history::PruneHistory),
        Box::new(vacuum_tables::VacuumTables),
        Box::<advance_operations::AdvanceOperations>::default(),
        Box::<publish_gauges::PublishGauges>::default(),
    ]
}

/// The pause between two full steps, which lets claims and enqueues through.
const PAUSE_BETWEEN_FULL_STEPS: Duration = Duration::from_millis(5);

/// The pause after a step that changed nothing although rows are due: another transaction has locked them.
const LOCKED_PAUSE: Duration = Duration::from_millis(100);

/// The result of a sweep: continue soon if there may be more, else when the next row is due.
fn after_sweep(swept: SweepResult, limit: usize) -> StepResult {
    let next_in = match swept {
        SweepResult { count, .. } if count >= limit => Some(PAUSE_BETWEEN_FULL_STEPS),
        SweepResult { count: 0, next_in: Some(Duration::ZERO) } => Some(jittered(LOCKED_PAUSE)),
        SweepResult { next_in, .. } => next_in.map(|wait| wait.max(PAUSE_BETWEEN_FULL_STEPS)),
    };
    StepResult { affected: swept.count, next_in }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(count: usize, next_in: Option<Duration>) -> Option<Duration> {
        after_sweep(SweepResult { count, next_in }, 10).next_in
    }

    #[test]
    fn due_rows_that_are_locked_do_not_make_the_leader_spin() {
        let pause = pause(0, Some(Duration::ZERO)).expect("the sweep is repeated");
        assert!(pause >= LOCKED_PAUSE / 2 && pause <= LOCKED_PAUSE, "{pause:?}");
    }

    #[test]
    fn a_sweep_continues_at_once_while_there_is_more_and_otherwise_when_a_row_is_due() {
        assert_eq!(pause(10, None), Some(PAUSE_BETWEEN_FULL_STEPS));
        let rest_is_due = pause(3, Some(Duration::ZERO));
        assert_eq!(rest_is_due, Some(PAUSE_BETWEEN_FULL_STEPS), "one step could not take all due rows");
        assert_eq!(pause(0, Some(Duration::from_secs(7))), Some(Duration::from_secs(7)));
        assert_eq!(pause(0, Some(Duration::from_micros(1))), Some(PAUSE_BETWEEN_FULL_STEPS));
        assert_eq!(pause(0, None), None);
    }
}
