//! The slots in which jobs run, and the few jobs that wait for one.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::Notify;

use crate::Context;

pub(crate) struct Floor {
    state: Mutex<State>,
    slots: usize,
    /// Told when there may be room for more.
    pub(crate) room: Notify,
    /// Told when the last slot fell idle.
    idle: Notify,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Context>,
    busy: usize,
    /// How many should wait for a slot; below half of it more are wanted.
    ahead: usize,
    closed: bool,
    ended: u64,
}

impl Floor {
    pub(crate) fn new(slots: usize) -> Self {
        Self { state: Mutex::default(), slots, room: Notify::new(), idle: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes jobs in; says how many slots to set to work. Closed, it gives them back.
    pub(crate) fn take(&self, jobs: Vec<Context>) -> Result<usize, Vec<Context>> {
        let mut state = self.lock();
        if state.closed {
            return Err(jobs);
        }
        state.ready.extend(jobs);
        let more = state.ready.len().min(self.slots.saturating_sub(state.busy));
        state.busy += more;
        Ok(more)
    }

    /// Gives out those that have waited for a slot longer than this: somebody else may have one free.
    pub(crate) fn overdue(&self, patience: Duration) -> VecDeque<Context> {
        let mut state = self.lock();
        let (late, ready): (VecDeque<_>, VecDeque<_>) =
            state.ready.drain(..).partition(|job| job.begun().elapsed() > patience);
        state.ready = ready;
        late
    }

    /// Whether any job waits for a slot.
    pub(crate) fn has_ready(&self) -> bool {
        !self.lock().ready.is_empty()
    }

    /// What a slot works on next, after `ended` others; with `None` it falls idle.
    pub(crate) fn next(&self, ended: u64) -> Option<Context> {
        let mut state = self.lock();
        let next = state.ready.pop_front();
        state.ended += ended;
        if next.is_none() {
            state.busy -= 1;
        }
        if state.ready.len() <= state.ahead / 2 {
            self.room.notify_one();
        }
        if state.busy == 0 {
            self.idle.notify_waiters();
        }
        next
    }

    /// How many jobs to ask for: the free slots, and as many as should wait for one. None while enough wait.
    pub(crate) fn wanted(&self) -> usize {
        let state = self.lock();
        if state.closed || state.ready.len() > state.ahead / 2 {
            return 0;
        }
        (self.slots + state.ahead).saturating_sub(state.busy + state.ready.len())
    }

    /// Says how many jobs should wait for a slot.
    pub(crate) fn keep_ahead(&self, jobs: usize) {
        self.lock().ahead = jobs;
    }

    /// Jobs that slots are through with so far.
    pub(crate) fn ended(&self) -> u64 {
        self.lock().ended
    }

    /// Slots that are free.
    pub(crate) fn free(&self) -> usize {
        let state = self.lock();
        self.slots.saturating_sub(state.busy + state.ready.len())
    }

    /// Slots that work.
    pub(crate) fn busy(&self) -> usize {
        self.lock().busy
    }

    /// Wants nothing more, and gives out those that no slot has begun.
    pub(crate) fn close(&self) -> Vec<Context> {
        let mut state = self.lock();
        state.closed = true;
        state.ready.drain(..).collect()
    }

    /// Whether it wants nothing more.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Waits until no slot works.
    pub(crate) async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            // Listening before looking: the last slot may fall idle in between.
            idle.as_mut().enable();
            if self.busy() == 0 {
                return;
            }
            idle.await;
        }
    }
}
