//! Jobs that are followed by their ids. All of them are asked for at every look, so there are so many at most, and no key brings more than
//! half of them: others' pages go on.

use std::collections::{HashMap, hash_map::Entry};

use orchestrix_core::{JobId, KeyId};

/// The most of all, and of those that one key has brought.
const MOST: usize = 100_000;
const SHARE: usize = MOST / 2;

#[derive(Debug, Default)]
pub(super) struct Watched {
    jobs: HashMap<JobId, Followed>,
    /// How many each key has brought.
    brought: HashMap<KeyId, usize>,
}

#[derive(Debug)]
struct Followed {
    /// How many follow it.
    by: usize,
    /// Whose key made it one to be asked for. Others who follow it cost nothing more.
    brought_by: Option<KeyId>,
}

impl Watched {
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(super) fn contains(&self, id: &JobId) -> bool {
        self.jobs.contains_key(id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &JobId> {
        self.jobs.keys()
    }

    /// How many more the holder of a key may bring; where no keys are asked for, all are one.
    pub(super) fn room(&self, key: Option<&KeyId>) -> usize {
        let share = key.map_or(MOST, |key| SHARE.saturating_sub(self.brought.get(key).copied().unwrap_or_default()));
        share.min(MOST.saturating_sub(self.jobs.len()))
    }

    /// One more follows a job.
    pub(super) fn add(&mut self, id: JobId, key: Option<&KeyId>) {
        match self.jobs.entry(id) {
            Entry::Occupied(mut there) => there.get_mut().by += 1,
            Entry::Vacant(new) => {
                new.insert(Followed { by: 1, brought_by: key.cloned() });
                if let Some(key) = key {
                    *self.brought.entry(key.clone()).or_default() += 1;
                }
            }
        }
    }

    /// One follows a job no longer; whether that was the last. Only whoever followed it says so, once.
    pub(super) fn remove(&mut self, id: JobId) -> bool {
        let Entry::Occupied(mut there) = self.jobs.entry(id) else { return false };
        there.get_mut().by -= 1;
        if there.get().by > 0 {
            return false;
        }
        if let Some(key) = there.remove().brought_by
            && let Entry::Occupied(mut brought) = self.brought.entry(key)
        {
            *brought.get_mut() -= 1;
            if *brought.get() == 0 {
                brought.remove();
            }
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
        let mut watched = Watched::default();
        let share = watched.room(Some(&greedy));
        (0..share).for_each(|n| watched.add(id(n), Some(&greedy)));
        assert_eq!(watched.room(Some(&greedy)), 0);
        assert_eq!(watched.room(Some(&other)), share);
        assert_eq!(watched.room(None), MOST - share);
        // To follow what others follow already costs them nothing.
        watched.add(id(0), Some(&other));
        assert_eq!(watched.room(Some(&other)), share);
        assert!(!watched.remove(id(0)), "the other follows it still");
        assert_eq!(watched.room(Some(&greedy)), 0);
        assert!(watched.remove(id(0)));
        assert_eq!(watched.room(Some(&greedy)), 1);
    }

    #[test]
    fn nothing_is_left_of_those_who_have_gone() {
        let key = KeyId::trusted("key");
        let mut watched = Watched::default();
        watched.add(id(1), Some(&key));
        watched.add(id(2), None);
        assert!(watched.remove(id(1)) && watched.remove(id(2)) && !watched.remove(id(2)));
        assert!(watched.is_empty() && watched.brought.is_empty());
    }
}
