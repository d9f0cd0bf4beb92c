//! What a transaction publishes after its commit.
//!
//! A transaction gathers [`Effects`] while it writes. After the commit the store publishes them once: it records the
//! metrics, adds the tenants of new jobs to the known turns, wakes subscribers of this process, notifies other processes, and
//! resolves the dependents of jobs that finished. A transaction that rolls back drops its effects.

use std::sync::Arc;

use orchestrix_core::{JobId, JobState, JobType, NewJob, Queue, ScheduleName, schedule::OccurrenceOutcome};
use orchestrix_store::{CommitEffects, Enqueued, Fence, wakeup::WakeupSender};

use crate::{
    PostgresStore,
    database::Database,
    known_turns::{ClaimHint, KnownTurns},
    wakeup::Notifier,
};

/// The effects of one transaction outside the database.
#[derive(Debug, Default)]
#[must_use = "effects must be published after the commit"]
pub(crate) struct Effects {
    commit: CommitEffects,
    hints: Vec<ClaimHint>,
    queue_resumed: bool,
    finished_parents: Vec<JobId>,
}

impl Effects {
    /// The effects of an enqueue. Duplicates have none.
    pub(crate) fn of_enqueued<'a>(jobs: impl Iterator<Item = (&'a NewJob, &'a Enqueued)>) -> Self {
        let mut effects = Self::default();
        for (job, enqueued) in jobs.filter(|(_, enqueued)| !enqueued.duplicate) {
            effects.commit.job_enqueued(&job.queue, &job.job_type);
            effects.commit.jobs_finished(&job.queue, &job.job_type, enqueued.state, 1);
            effects.commit.state_entered(&job.queue, enqueued.state);
            match enqueued.state {
                JobState::Pending => {
                    effects.add_hint(ClaimHint::enqueued(&job.queue, &job.job_type, -job.priority.get(), &job.tenant));
                }
                // Cancelled at once because a parent had failed. It may have dependents in the same call.
                JobState::Cancelled => effects.finished_parents.push(enqueued.id),
                _ => {}
            }
        }
        effects
    }

    /// Notes that a job entered `state`, or stands at another position in the order of claims.
    pub(crate) fn job_moved(&mut self, state: JobState, queue: Queue, job_type: JobType) {
        self.commit.state_entered(&queue, state);
        if state == JobState::Pending {
            self.add_hint(ClaimHint::claimable(queue, job_type));
        }
    }

    /// Counts `n` jobs that finished in `state`.
    pub(crate) fn jobs_finished(&mut self, queue: &Queue, job_type: &JobType, state: JobState, n: u64) {
        self.commit.jobs_finished(queue, job_type, state, n);
    }

    /// Notes a finished job that has dependents.
    pub(crate) fn parent_finished(&mut self, id: JobId) {
        self.finished_parents.push(id);
    }

    /// Counts `n` nominal times of a schedule that ended in `outcome`.
    pub(crate) fn schedule_fired(&mut self, schedule: &ScheduleName, outcome: OccurrenceOutcome, n: u64) {
        self.commit.schedule_fired(schedule, outcome, n);
    }

    /// Wakes workers that wait for jobs of `queue`.
    pub(crate) fn queue_claimable(&mut self, queue: Queue) {
        self.commit.queue_claimable(queue);
    }

    /// Notes that jobs of a queue are claimable again, at their old positions. Wakes workers that wait for them, and the
    /// leader for what is still parked.
    pub(crate) fn queue_resumed(&mut self, queue: Queue) {
        self.queue_resumed = true;
        self.commit.queue_claimable(queue);
        self.commit.timer_set();
    }

    /// Wakes the leader's timers.
    pub(crate) fn timer_set(&mut self) {
        self.commit.timer_set();
    }

    /// Adds the effects of a later part of the same transaction.
    pub(crate) fn merge(&mut self, later: Self) {
        self.commit.merge(later.commit);
        self.hints.extend(later.hints);
        self.queue_resumed |= later.queue_resumed;
        self.finished_parents.extend(later.finished_parents);
    }

    /// Takes the finished jobs that have dependents.
    pub(crate) fn take_finished_parents(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.finished_parents)
    }

    // Jobs of one call mostly share a lane and a tenant: one hint stands for a run of them.
    fn add_hint(&mut self, hint: ClaimHint) {
        match self.hints.last_mut() {
            Some(last) if *last == hint => {}
            _ => self.hints.push(hint),
        }
    }
}

/// Publishes effects to the known turns, subscribers and other processes. Clones share all three.
#[derive(Debug, Clone)]
pub(crate) struct Publisher {
    known_turns: Arc<KnownTurns>,
    wakeups: WakeupSender,
    notifier: Notifier,
}

impl Publisher {
    /// A publisher that notifies other processes through `database`.
    pub(crate) fn start(database: &Database, known_turns: Arc<KnownTurns>, wakeups: WakeupSender) -> Self {
        Self { known_turns, wakeups, notifier: Notifier::start(database.clone()) }
    }

    /// A publisher of another pool with the same known turns and subscribers.
    pub(crate) fn for_database(&self, database: &Database) -> Self {
        Self::start(database, Arc::clone(&self.known_turns), self.wakeups.clone())
    }

    /// Records metrics, updates the known turns, and wakes subscribers here and in other processes. Dependents of finished
    /// jobs are not resolved: that is [`PostgresStore::publish`].
    pub(crate) fn publish(&self, effects: Effects) {
        if effects.queue_resumed {
            self.known_turns.reset();
        }
        self.known_turns.apply(&effects.hints);
        for queue in effects.commit.claimable() {
            self.notifier.notify_queue(queue);
        }
        if effects.commit.sets_timer() {
            self.notifier.notify_timers();
        }
        effects.commit.publish(&self.wakeups);
    }

    pub(crate) fn known_turns(&self) -> &KnownTurns {
        &self.known_turns
    }

    pub(crate) fn wakeups(&self) -> &WakeupSender {
        &self.wakeups
    }

    /// Waits until other processes were notified of everything published so far.
    pub(crate) async fn flush(&self) {
        self.notifier.flush().await;
    }
}

impl PostgresStore {
    /// Publishes the effects of a committed transaction, then resolves dependents of the jobs that finished in it: a
    /// bounded number here, the rest in the background.
    pub(crate) async fn publish(&self, fence: Fence, mut effects: Effects) {
        let parents = effects.take_finished_parents();
        self.publisher().publish(effects);
        self.resolve_dependents(fence, parents).await;
    }
}
