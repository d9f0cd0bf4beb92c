//! Bounded concurrency with a bounded wait queue.
//!
//! A caller first takes a [`Slot`], without waiting, and is rejected if all of them are taken. The slot then waits for
//! a permit to run. There are `concurrency + backlog` slots and `concurrency` permits, so at most `backlog` callers
//! wait. Request admission and key lookups both use it.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

pub(crate) struct BoundedQueue {
    slots: Arc<Semaphore>,
    permits: Arc<Semaphore>,
    #[cfg(test)]
    capacity: usize,
}

/// A place among the running and waiting callers. Dropping it frees the place.
pub(crate) struct Slot {
    slot: OwnedSemaphorePermit,
    permits: Arc<Semaphore>,
}

/// The right to run, together with the slot it was acquired through. Dropping it frees both.
pub(crate) struct RunPermit {
    _permit: OwnedSemaphorePermit,
    _slot: OwnedSemaphorePermit,
}

impl BoundedQueue {
    pub(crate) fn new(concurrency: usize, backlog: usize) -> Self {
        let capacity = concurrency.saturating_add(backlog).min(Semaphore::MAX_PERMITS);
        let concurrency = concurrency.min(Semaphore::MAX_PERMITS);
        Self {
            slots: Arc::new(Semaphore::new(capacity)),
            permits: Arc::new(Semaphore::new(concurrency)),
            #[cfg(test)]
            capacity,
        }
    }

    /// Takes a slot, or returns `None` if `concurrency + backlog` callers already run or wait.
    pub(crate) fn try_enter(&self) -> Option<Slot> {
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        Some(Slot { slot, permits: Arc::clone(&self.permits) })
    }

    /// The number of callers that run or wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.capacity - self.slots.available_permits()
    }

    /// Takes `concurrency` permits, so that nothing runs until the returned value is dropped.
    #[cfg(test)]
    pub(crate) async fn block(&self, concurrency: usize) -> tokio::sync::SemaphorePermit<'_> {
        self.permits.acquire_many(concurrency.try_into().unwrap()).await.unwrap()
    }
}

impl Slot {
    /// Waits for a permit to run.
    pub(crate) async fn acquire(self) -> Result<RunPermit, AcquireError> {
        let permit = self.permits.acquire_owned().await?;
        Ok(RunPermit { _permit: permit, _slot: self.slot })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn callers_beyond_concurrency_and_backlog_are_rejected() {
        let queue = BoundedQueue::new(1, 1);
        let running = queue.try_enter().unwrap().acquire().await.unwrap();
        let waiting = queue.try_enter().unwrap();
        assert!(queue.try_enter().is_none(), "the backlog is full");
        let mut waiting = Box::pin(waiting.acquire());
        assert!((&mut waiting).now_or_never().is_none(), "the only permit is taken");
        drop(running);
        let running = waiting.now_or_never().expect("the permit is free").unwrap();
        assert_eq!(queue.len(), 1);
        drop(running);
        assert_eq!(queue.len(), 0);
    }

    #[tokio::test]
    async fn a_caller_that_stops_waiting_frees_its_slot() {
        let queue = BoundedQueue::new(0, 1);
        {
            let mut waiting = Box::pin(queue.try_enter().unwrap().acquire());
            assert!((&mut waiting).now_or_never().is_none());
            assert!(queue.try_enter().is_none());
        }
        assert!(queue.try_enter().is_some());
    }

    #[test]
    fn an_unlimited_backlog_is_accepted() {
        assert!(BoundedQueue::new(usize::MAX, usize::MAX).try_enter().is_some());
    }
}
