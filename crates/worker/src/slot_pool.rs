//! The slots that jobs run in, and the queue of prefetched jobs that wait for one.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use crate::Context;

pub(crate) struct SlotPool {
    state: Mutex<State>,
    slots: usize,
    /// Notified when more jobs may be claimed.
    pub(crate) has_room: Notify,
    /// Notified when the last busy slot becomes idle.
    all_idle: Notify,
}

#[derive(Default)]
struct State {
    queued: VecDeque<Context>,
    busy: usize,
    /// The target length of the queue. The pool asks for more jobs when at most half of it is left.
    prefetch: usize,
    closed: bool,
    finished: u64,
}

impl SlotPool {
    pub(crate) fn new(slots: usize) -> Self {
        Self { state: Mutex::default(), slots, has_room: Notify::new(), all_idle: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues jobs. Returns how many slots the caller must start, or the jobs themselves if the pool is closed.
    pub(crate) fn push(&self, jobs: Vec<Context>) -> Result<usize, Vec<Context>> {
        let mut state = self.lock();
        if state.closed {
            return Err(jobs);
        }
        state.queued.extend(jobs);
        let started = state.queued.len().min(self.slots.saturating_sub(state.busy));
        state.busy += started;
        Ok(started)
    }

    /// Removes and returns the jobs that have been queued for longer than `max_wait`: another worker may have a free
    /// slot.
    pub(crate) fn take_overdue(&self, max_wait: Duration) -> VecDeque<Context> {
        let mut state = self.lock();
        let (overdue, queued): (VecDeque<_>, VecDeque<_>) =
            state.queued.drain(..).partition(|job| job.claimed_at().elapsed() > max_wait);
        state.queued = queued;
        overdue
    }

    /// Whether any job is queued for a slot.
    pub(crate) fn has_queued(&self) -> bool {
        !self.lock().queued.is_empty()
    }

    /// Takes the next job for a slot that has just finished `finished` jobs. `None` makes the slot idle.
    pub(crate) fn next(&self, finished: u64) -> Option<Context> {
        let mut state = self.lock();
        let next = state.queued.pop_front();
        state.finished += finished;
        if next.is_none() {
            state.busy -= 1;
        }
        if state.queued.len() <= state.prefetch / 2 {
            self.has_room.notify_one();
        }
        if state.busy == 0 {
            self.all_idle.notify_waiters();
        }
        next
    }

    /// How many jobs to claim: the free slots plus the missing prefetched jobs. Zero while more than half of those are
    /// queued.
    pub(crate) fn wanted(&self) -> usize {
        let state = self.lock();
        if state.closed || state.queued.len() > state.prefetch / 2 {
            return 0;
        }
        (self.slots + state.prefetch).saturating_sub(state.busy + state.queued.len())
    }

    /// Sets the target number of queued jobs.
    pub(crate) fn set_prefetch(&self, jobs: usize) {
        self.lock().prefetch = jobs;
    }

    /// How many jobs the slots have finished so far.
    pub(crate) fn finished(&self) -> u64 {
        self.lock().finished
    }

    /// The number of slots that neither run a job nor have one queued.
    pub(crate) fn free(&self) -> usize {
        let state = self.lock();
        self.slots.saturating_sub(state.busy + state.queued.len())
    }

    /// The number of slots that run a job.
    pub(crate) fn busy(&self) -> usize {
        self.lock().busy
    }

    /// Accepts no more jobs, and returns those that no slot has started.
    pub(crate) fn close(&self) -> Vec<Context> {
        let mut state = self.lock();
        state.closed = true;
        state.queued.drain(..).collect()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Waits until every slot is idle.
    pub(crate) async fn wait_idle(&self) {
        loop {
            let all_idle = self.all_idle.notified();
            tokio::pin!(all_idle);
            // Register before the check: the last slot may become idle in between.
            all_idle.as_mut().enable();
            if self.busy() == 0 {
                return;
            }
            all_idle.await;
        }
    }
}
