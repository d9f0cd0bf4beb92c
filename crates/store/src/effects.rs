//! What a store publishes after a commit: metrics and wake-ups.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::take,
};

use metrics::{Label, counter};
use orchestrix_core::{Event, JobState, JobType, Queue, ScheduleName, schedule::OccurrenceOutcome};

use crate::{
    Wakeup,
    metrics::{JOBS_ENQUEUED, JOBS_FINISHED, SCHEDULE_FIRES, lane, series},
    wakeup::WakeupSender,
};

/// The effects of one transaction outside the database.
///
/// A store gathers them while it writes and calls [`publish`](CommitEffects::publish) once the commit is durable.
/// A transaction that rolls back drops them.
#[derive(Debug, Default)]
pub struct CommitEffects {
    enqueued: BTreeMap<(Queue, JobType), u64>,
    finished: BTreeMap<(Queue, JobType, JobState), u64>,
    fires: BTreeMap<(ScheduleName, &'static str), u64>,
    claimable: BTreeSet<Queue>,
    timer_set: bool,
}

impl CommitEffects {
    /// Counts a new job.
    pub fn job_enqueued(&mut self, queue: &Queue, job_type: &JobType) {
        *self.enqueued.entry((queue.clone(), job_type.clone())).or_default() += 1;
    }

    /// Counts `n` jobs that moved to `state`. Only terminal states are counted.
    pub fn jobs_finished(&mut self, queue: &Queue, job_type: &JobType, state: JobState, n: u64) {
        if state.is_terminal() && n > 0 {
            *self.finished.entry((queue.clone(), job_type.clone(), state)).or_default() += n;
        }
    }

    /// Counts `n` nominal times of a schedule that ended in `outcome`.
    pub fn schedule_fired(&mut self, schedule: &ScheduleName, outcome: OccurrenceOutcome, n: u64) {
        *self.fires.entry((schedule.clone(), outcome.as_str())).or_default() += n;
    }

    /// Notes that a job of `queue` entered `state`, so that waiting workers or the leader's timers wake up.
    pub fn state_entered(&mut self, queue: &Queue, state: JobState) {
        if state == JobState::Pending && !self.claimable.contains(queue) {
            self.claimable.insert(queue.clone());
        }
        self.timer_set |= state.next(Event::Promote).is_ok();
    }

    /// Wakes workers that wait for jobs of `queue`.
    pub fn queue_claimable(&mut self, queue: Queue) {
        self.claimable.insert(queue);
    }

    /// Wakes the leader's timers: a job or a schedule waits for a time.
    pub fn timer_set(&mut self) {
        self.timer_set = true;
    }

    /// The queues in which a job became claimable.
    pub fn claimable(&self) -> impl Iterator<Item = &Queue> {
        self.claimable.iter()
    }

    /// Whether a job or a schedule began to wait for a time.
    pub const fn sets_timer(&self) -> bool {
        self.timer_set
    }

    /// Adds the effects of a later part of the same transaction.
    pub fn merge(&mut self, later: Self) {
        fn add<K: Ord>(all: &mut BTreeMap<K, u64>, more: BTreeMap<K, u64>) {
            for (key, n) in more {
                *all.entry(key).or_default() += n;
            }
        }
        add(&mut self.enqueued, later.enqueued);
        add(&mut self.finished, later.finished);
        add(&mut self.fires, later.fires);
        self.claimable.extend(later.claimable);
        self.timer_set |= later.timer_set;
    }

    /// Records the metrics and wakes subscribers of this process. Call it after the commit.
    pub fn publish(mut self, wakeups: &WakeupSender) {
        self.record_metrics();
        if self.timer_set {
            wakeups.wake_timers();
        }
        for queue in self.claimable {
            wakeups.wake(Wakeup::Queue(queue));
        }
    }

    /// Records the metrics alone, once: for a commit whose wake-ups another process sends.
    pub fn record_metrics(&mut self) {
        for ((queue, job_type), n) in take(&mut self.enqueued) {
            counter!(JOBS_ENQUEUED, Vec::from(lane(&queue, &job_type))).increment(n);
        }
        for ((queue, job_type, state), n) in take(&mut self.finished) {
            let [queue, job_type] = lane(&queue, &job_type);
            let outcome = Label::from_static_parts("outcome", state.as_str());
            counter!(JOBS_FINISHED, vec![queue, job_type, outcome]).increment(n);
        }
        for ((schedule, outcome), n) in take(&mut self.fires) {
            counter!(SCHEDULE_FIRES, "schedule" => series::schedule(&schedule), "outcome" => outcome).increment(n);
        }
    }
}
