//! The jobs that are subscribed to by id. Every poll reads all of them, so their number is bounded, and one key may
//! hold at most half of them.

use std::collections::{HashMap, hash_map::Entry};

use orchestrix_core::{JobId, KeyId};

use crate::key_counts::KeyCounts;

/// The most watched jobs.
const CAPACITY: usize = 100_000;
/// The most watched jobs that are charged to one key.
const CAPACITY_PER_KEY: usize = CAPACITY / 2;

#[derive(Debug, Default)]
pub(super) struct WatchedJobs {
    jobs: HashMap<JobId, WatchedJob>,
    charged: KeyCounts,
}

#[derive(Debug)]
struct WatchedJob {
    subscribers: usize,
    /// The key of the first subscriber, which pays for the job. Further subscribers cost nothing.
    charged_to: Option<KeyId>,
}

impl WatchedJobs {
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(super) fn contains(&self, id: &JobId) -> bool {
        self.jobs.contains_key(id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &JobId> {
        self.jobs.keys()
    }

    /// How many more jobs a key may add. Without a key only the total counts.
    pub(super) fn room(&self, key: Option<&KeyId>) -> usize {
        let share = key.map_or(CAPACITY, |key| CAPACITY_PER_KEY.saturating_sub(self.charged.get(key)));
        share.min(CAPACITY.saturating_sub(self.jobs.len()))
    }

    /// Adds a subscriber to a job.
    pub(super) fn add(&mut self, id: JobId, key: Option<&KeyId>) {
        match self.jobs.entry(id) {
            Entry::Occupied(mut watched) => watched.get_mut().subscribers += 1,
            Entry::Vacant(vacant) => {
                vacant.insert(WatchedJob { subscribers: 1, charged_to: key.cloned() });
                if let Some(key) = key {
                    self.charged.add(key);
                }
            }
        }
    }

    /// Removes a subscriber that [`Self::add`] added. Returns whether it was the last one.
    pub(super) fn remove(&mut self, id: JobId) -> bool {
        let Entry::Occupied(mut watched) = self.jobs.entry(id) else { return false };
        watched.get_mut().subscribers -= 1;
        if watched.get().subscribers > 0 {
            return false;
        }
        if let Some(key) = watched.remove().charged_to {
            self.charged.remove(&key);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn id(n: usize) -> JobId {
        JobId::from_uuid(Uuid::from_u128(n as u128))
    }

    #[test]
    fn one_key_leaves_half_of_the_room_to_others() {
        let (greedy, other) = (KeyId::trusted("greedy"), KeyId::trusted("other"));
        let mut watched = WatchedJobs::default();
        let share = watched.room(Some(&greedy));
        (0..share).for_each(|n| watched.add(id(n), Some(&greedy)));
        assert_eq!(watched.room(Some(&greedy)), 0);
        assert_eq!(watched.room(Some(&other)), share);
        assert_eq!(watched.room(None), CAPACITY - share);
        // A second subscriber to a watched job costs nothing.
        watched.add(id(0), Some(&other));
        assert_eq!(watched.room(Some(&other)), share);
        assert!(!watched.remove(id(0)), "one subscriber is left");
        assert_eq!(watched.room(Some(&greedy)), 0);
        assert!(watched.remove(id(0)));
        assert_eq!(watched.room(Some(&greedy)), 1);
    }

    #[test]
    fn nothing_is_left_after_the_last_subscriber() {
        let key = KeyId::trusted("key");
        let mut watched = WatchedJobs::default();
        watched.add(id(1), Some(&key));
        watched.add(id(2), None);
        assert!(watched.remove(id(1)) && watched.remove(id(2)) && !watched.remove(id(2)));
        assert!(watched.is_empty() && watched.charged.is_empty());
    }
}
