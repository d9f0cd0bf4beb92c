//! The source of job ids.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use orchestrix_core::{JobId, JobIds};
use orchestrix_store::{Clock, SystemClock};

/// Generates job ids, each greater than all ids that this source and its clones generated before.
///
/// The time in an id comes from a clock of this process. It chooses the partition and lets lists by time find their
/// range. All other times of a job come from the database.
#[derive(Debug, Clone)]
pub struct IdSource {
    clock: Arc<dyn Clock>,
    ids: Arc<Mutex<JobIds>>,
}

impl Default for IdSource {
    /// The source that all stores of this process share, on the system clock.
    fn default() -> Self {
        static SHARED: LazyLock<IdSource> = LazyLock::new(|| IdSource::on(Arc::new(SystemClock)));
        SHARED.clone()
    }
}

impl IdSource {
    /// A source on another clock, for tests on virtual time.
    pub fn on(clock: Arc<dyn Clock>) -> Self {
        Self { clock, ids: Arc::default() }
    }

    pub(crate) fn next(&self) -> JobId {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).next(self.clock.now(), rand::random())
    }
}
