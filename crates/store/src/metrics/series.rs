//! Who has series of its own.

use std::{
    collections::HashSet,
    hash::Hash,
    sync::{LazyLock, PoisonError, RwLock},
};

use metrics::SharedString;
use orchestrix_core::{JobType, Queue, ScheduleName};

/// What stands for all that came too late to have series of their own.
pub const OTHER: &str = "other";

/// The most that have.
pub(super) const MOST: usize = 1_000;

/// Those that came first.
struct First<K>(RwLock<HashSet<K>>);

impl<K: Hash + Eq + Clone> First<K> {
    fn new() -> Self {
        Self(RwLock::default())
    }

    fn has(&self, key: &K) -> bool {
        {
            let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
            if known.contains(key) || known.len() >= MOST {
                return known.contains(key);
            }
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST {
            known.insert(key.clone());
        }
        known.contains(key)
    }
}

static LANES: LazyLock<First<(Queue, JobType)>> = LazyLock::new(First::new);
static QUEUES: LazyLock<First<Queue>> = LazyLock::new(First::new);
static SCHEDULES: LazyLock<First<ScheduleName>> = LazyLock::new(First::new);

fn label(own: bool, name: &str) -> SharedString {
    if own { name.to_owned().into() } else { OTHER.into() }
}

pub(super) fn lane(queue: &Queue, job_type: &JobType) -> (SharedString, SharedString) {
    let own = LANES.has(&(queue.clone(), job_type.clone()));
    (label(own, queue.as_str()), label(own, job_type.as_str()))
}

pub(super) fn queue(name: &Queue) -> SharedString {
    label(QUEUES.has(name), name.as_str())
}

pub(super) fn schedule(name: &ScheduleName) -> SharedString {
    label(SCHEDULES.has(name), name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_have_series_of_their_own_and_keep_them() {
        let first = First::new();
        assert!((0..MOST).all(|n| first.has(&n)));
        assert!(!first.has(&MOST) && !first.has(&(MOST + 1)));
        assert!((0..MOST).all(|n| first.has(&n)), "those that were there stay");
    }
}
