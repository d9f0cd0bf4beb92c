//! Where ids of jobs come from.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use orchestrix_core::{JobId, JobIds};
use orchestrix_store::{Clock, SystemClock};

/// Makes ids of jobs, each greater than all that it and its clones made before. The time in them is that of a clock of this node: it places
/// the row, and tells lists by time where to look. What time it is is still the database's to say.
#[derive(Debug, Clone)]
pub struct IdSource {
    clock: Arc<dyn Clock>,
    made: Arc<Mutex<JobIds>>,
}

impl Default for IdSource {
    /// The one source that all stores of a process share, on the machine's clock.
    fn default() -> Self {
        static OF_THE_PROCESS: LazyLock<IdSource> = LazyLock::new(|| IdSource::on(Arc::new(SystemClock)));
        OF_THE_PROCESS.clone()
    }
}

impl IdSource {
    /// A source on a clock of its own, for whoever lets a database live on virtual time.
    pub fn on(clock: Arc<dyn Clock>) -> Self {
        Self { clock, made: Arc::default() }
    }

    pub(crate) fn next(&self) -> JobId {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).next(self.clock.now(), rand::random())
    }
}
