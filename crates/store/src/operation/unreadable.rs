//! Operations that this version cannot read. A newer version may have begun them and will run them when it leads.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use orchestrix_core::OperationId;

/// The unreadable operations that were logged. Each is logged once, since the leader reads them many times a second.
#[derive(Debug, Default)]
pub struct Unreadable(Mutex<BTreeSet<OperationId>>);

impl Unreadable {
    /// The most ids remembered. Beyond it, all are logged again.
    const MAX_IDS: usize = 1_000;

    /// Whether this operation has not been logged yet. Marks it as logged.
    pub fn is_new(&self, id: OperationId) -> bool {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() >= Self::MAX_IDS {
            logged.clear();
        }
        logged.insert(id)
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::Timestamp;

    use super::*;

    #[test]
    fn each_operation_is_logged_once() {
        let unreadable = Unreadable::default();
        let ids = [1, 2].map(|n| OperationId::after(None, Timestamp::UNIX_EPOCH, [n; 10]));
        assert_eq!([ids[0], ids[1], ids[0]].map(|id| unreadable.is_new(id)), [true, true, false]);
    }
}
