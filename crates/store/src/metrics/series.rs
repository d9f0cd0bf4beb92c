//! Limits the number of metric series that client-chosen names can create.

use std::{
    collections::HashSet,
    hash::Hash,
    sync::{LazyLock, PoisonError, RwLock},
};

use metrics::SharedString;
use orchestrix_core::{JobType, Queue, ScheduleName};

/// The label value shared by all names beyond the limit.
pub const OTHER: &str = "other";

/// The most names with series of their own.
pub(super) const MAX_SERIES: usize = 1_000;

/// The first [`MAX_SERIES`] names.
struct SeriesNames<K>(RwLock<HashSet<K>>);

impl<K: Hash + Eq + Clone> SeriesNames<K> {
    fn new() -> Self {
        Self(RwLock::default())
    }

    fn admits(&self, key: &K) -> bool {
        {
            let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
            if known.contains(key) || known.len() >= MAX_SERIES {
                return known.contains(key);
            }
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_SERIES {
            known.insert(key.clone());
        }
        known.contains(key)
    }
}

static LANES: LazyLock<SeriesNames<(Queue, JobType)>> = LazyLock::new(SeriesNames::new);
static QUEUES: LazyLock<SeriesNames<Queue>> = LazyLock::new(SeriesNames::new);
static SCHEDULES: LazyLock<SeriesNames<ScheduleName>> = LazyLock::new(SeriesNames::new);

fn label(own: bool, name: &str) -> SharedString {
    if own { name.to_owned().into() } else { OTHER.into() }
}

pub(crate) fn lane(queue: &Queue, job_type: &JobType) -> (SharedString, SharedString) {
    let own = LANES.admits(&(queue.clone(), job_type.clone()));
    (label(own, queue.as_str()), label(own, job_type.as_str()))
}

pub(crate) fn queue(name: &Queue) -> SharedString {
    label(QUEUES.admits(name), name.as_str())
}

pub(crate) fn schedule(name: &ScheduleName) -> SharedString {
    label(SCHEDULES.admits(name), name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_limit_share_one_series() {
        let all = |from: usize, to: usize| {
            (from..to).map(|n| lane(&Queue::trusted("q"), &JobType::trusted(&n.to_string()))).collect::<Vec<_>>()
        };
        let first = all(0, MAX_SERIES);
        assert!(first.iter().enumerate().all(|(n, lane)| *lane == ("q".into(), n.to_string().into())));
        assert!(all(MAX_SERIES, MAX_SERIES + 10).iter().all(|lane| *lane == (OTHER.into(), OTHER.into())));
        assert_eq!(all(0, MAX_SERIES), first, "the first names keep their series");
    }
}
