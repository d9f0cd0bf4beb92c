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

pub(crate) fn lane(queue: &Queue, job_type: &JobType) -> (SharedString, SharedString) {
    let own = LANES.has(&(queue.clone(), job_type.clone()));
    (label(own, queue.as_str()), label(own, job_type.as_str()))
}

pub(crate) fn queue(name: &Queue) -> SharedString {
    label(QUEUES.has(name), name.as_str())
}

pub(crate) fn schedule(name: &ScheduleName) -> SharedString {
    label(SCHEDULES.has(name), name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_have_series_of_their_own_and_keep_them_and_the_rest_is_one() {
        let all = |from: usize, to: usize| {
            (from..to).map(|n| lane(&Queue::trusted("q"), &JobType::trusted(&n.to_string()))).collect::<Vec<_>>()
        };
        let first = all(0, MOST);
        assert!(first.iter().enumerate().all(|(n, lane)| *lane == ("q".into(), n.to_string().into())));
        assert!(all(MOST, MOST + 10).iter().all(|lane| *lane == (OTHER.into(), OTHER.into())));
        assert_eq!(all(0, MOST), first, "those that were there stay");
    }
}
