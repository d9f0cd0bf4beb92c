//! Counts of things held per API key. Used to give each key a bounded share of a limited resource.

use std::collections::{HashMap, hash_map::Entry};

use orchestrix_core::KeyId;

/// How many things each key holds. Keys that hold nothing take no memory.
#[derive(Debug, Default)]
pub(crate) struct KeyCounts(HashMap<KeyId, usize>);

impl KeyCounts {
    pub(crate) fn get(&self, key: &KeyId) -> usize {
        self.0.get(key).copied().unwrap_or_default()
    }

    pub(crate) fn add(&mut self, key: &KeyId) {
        *self.0.entry(key.clone()).or_default() += 1;
    }

    /// Subtracts one that [`Self::add`] added.
    pub(crate) fn remove(&mut self, key: &KeyId) {
        let Entry::Occupied(mut count) = self.0.entry(key.clone()) else { return };
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
