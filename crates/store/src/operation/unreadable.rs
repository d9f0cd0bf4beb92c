//! Operations that this program cannot read: a newer one may have begun them, and will work them off when it leads.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use orchestrix_core::OperationId;

/// Of which of them somebody was told: each is worth one warning, and whoever leads looks many times a second.
#[derive(Debug, Default)]
pub struct Unreadable(Mutex<BTreeSet<OperationId>>);

impl Unreadable {
    /// As many are remembered; they are told of again once there are more.
    const MOST: usize = 1_000;

    /// Whether nobody was told of this one yet.
    pub fn is_new(&self, id: OperationId) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= Self::MOST {
            told.clear();
        }
        told.insert(id)
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::Timestamp;

    use super::*;

    #[test]
    fn each_is_told_of_once() {
        let unreadable = Unreadable::default();
        let ids = [1, 2].map(|n| OperationId::after(None, Timestamp::UNIX_EPOCH, [n; 10]));
        assert_eq!([ids[0], ids[1], ids[0]].map(|id| unreadable.is_new(id)), [true, true, false]);
    }
}
