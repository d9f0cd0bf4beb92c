//! The background task that resolves the dependents which calls left over.
//!
//! There is one task per store at most. A call that leaves parents behind starts it; it ends when none are left, or
//! with the store. Losing the task costs time only: the table `settled` lists its parents, and the leader's sweep
//! resolves them.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use orchestrix_core::JobId;

use super::{StepScope, resolve};
use crate::{Inner, PostgresStore};
use orchestrix_store::Fence;

/// The most parents that wait for the task. Further ones are left to the sweep.
const MAX_WAITING: usize = 10_000;
/// The most dependencies in one step, and the most parents. The parents of a step share its dependencies equally, so
/// that a parent with many dependents does not delay the others.
const STEP: usize = 1_000;
/// How often a step is tried, and the pause after a failure.
const TRIES: u32 = 3;
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Finished parents that wait for the background task.
#[derive(Debug, Default)]
pub(crate) struct WaitingParents(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    parents: VecDeque<JobId>,
    has_task: bool,
}

impl WaitingParents {
    fn with<T>(&self, access: impl FnOnce(&mut Waiting) -> T) -> T {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Waiting {
    // Returns how many did not fit.
    fn add(&mut self, parents: Vec<JobId>) -> usize {
        let fit = parents.len().min(MAX_WAITING.saturating_sub(self.parents.len()));
        let refused = parents.len() - fit;
        self.parents.extend(parents.into_iter().take(fit));
        refused
    }

    fn take(&mut self) -> Vec<JobId> {
        let n = self.parents.len().min(STEP);
        self.parents.drain(..n).collect()
    }
}

impl PostgresStore {
    /// Hands parents to the background task, and starts it if there is none.
    pub(super) fn resolve_in_background(&self, parents: Vec<JobId>) {
        let waiting = &self.0.waiting_parents;
        let (refused, starts) =
            waiting.with(|state| (state.add(parents), !std::mem::replace(&mut state.has_task, true)));
        if refused > 0 {
            self.wake_unblock_sweep();
        }
        if starts {
            let task = Task { waiting: Arc::clone(waiting), ended: false };
            tokio::spawn(task.run(Arc::downgrade(&self.0)));
        }
    }
}

/// The running task. Dropping it ends it, also when the runtime shuts down or a panic unwinds.
struct Task {
    waiting: Arc<WaitingParents>,
    ended: bool,
}

impl Task {
    async fn run(mut self, store: Weak<Inner>) {
        while let Some(parents) = self.next() {
            // Held for one step, so that the task ends soon after the store is dropped.
            let Some(inner) = store.upgrade() else { return };
            if !step(&PostgresStore(inner), parents).await {
                return;
            }
        }
    }

    // The parents of the next step. Without any the task has ended: a later call starts another.
    fn next(&mut self) -> Option<Vec<JobId>> {
        let parents = self.waiting.with(|state| {
            let parents = state.take();
            state.has_task = !parents.is_empty();
            parents
        });
        self.ended = parents.is_empty();
        (!self.ended).then_some(parents)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if !self.ended {
            self.waiting.with(|state| *state = Waiting::default());
        }
    }
}

// Returns whether the task should go on.
async fn step(store: &PostgresStore, parents: Vec<JobId>) -> bool {
    let scope =
        StepScope { limit: STEP, limit_per_parent: STEP / parents.len().clamp(1, STEP), parents: Some(&parents) };
    let mut tries = 1;
    loop {
        match resolve(store, Fence::NONE, scope).await {
            Ok(step) => {
                store.publisher().publish(step.effects);
                // A step without progress is not repeated: the sweep does it, at its own pace.
                let refused =
                    if step.resolved == 0 { 0 } else { store.0.waiting_parents.with(|state| state.add(step.left)) };
                if refused > 0 {
                    store.wake_unblock_sweep();
                }
                return true;
            }
            Err(_) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            Err(error) => {
                tracing::warn!(%error, parents = parents.len(), "dependents not resolved; the leader's sweep will do it");
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::JobId;
    use uuid::Uuid;

    use super::*;

    fn ids(n: usize) -> Vec<JobId> {
        (0..n).map(|n| JobId::from_uuid(Uuid::from_u128(n as u128))).collect()
    }

    #[test]
    fn parents_past_the_limit_are_refused() {
        let mut waiting = Waiting::default();
        assert_eq!(waiting.add(ids(MAX_WAITING - 1)), 0);
        assert_eq!(waiting.add(ids(3)), 2);
        assert_eq!(waiting.parents.len(), MAX_WAITING);
        assert_eq!(waiting.take().len(), STEP);
        assert_eq!(waiting.add(ids(3)), 0);
    }

    #[test]
    fn the_task_ends_without_parents_and_a_later_call_may_start_another() {
        let waiting = Arc::new(WaitingParents::default());
        waiting.with(|state| (state.add(ids(2)), state.has_task = true));
        let mut task = Task { waiting: Arc::clone(&waiting), ended: false };
        assert_eq!(task.next(), Some(ids(2)));
        assert_eq!(task.next(), None);
        assert!(!waiting.with(|state| state.has_task));
        waiting.with(|state| (state.add(ids(1)), state.has_task = true));
        drop(task);
        assert_eq!(waiting.with(|state| state.parents.len()), 1, "these belong to the next task");
    }

    #[test]
    fn an_aborted_task_leaves_its_parents_to_the_sweep_and_a_later_call_may_start_another() {
        let waiting = Arc::new(WaitingParents::default());
        waiting.with(|state| (state.add(ids(2)), state.has_task = true));
        drop(Task { waiting: Arc::clone(&waiting), ended: false });
        assert!(waiting.with(|state| state.parents.is_empty() && !state.has_task));
    }
}
