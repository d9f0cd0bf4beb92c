//! Options of a store in a SQLite file.

use std::{path::PathBuf, sync::Arc, time::Duration};

use orchestrix_core::FieldError;
use orchestrix_store::{Clock, SystemClock};

/// The file of a store, and how this process uses it.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// The file. It is created if it does not exist; its directory is not. It must not be on a network file system.
    pub path: PathBuf,
    /// The clock. Processes that share a file also share a machine, so the machine's clock suits all of them.
    pub clock: Arc<dyn Clock>,
    /// The maximum number of concurrent reads.
    pub readers: usize,
    /// How long to wait for the lock while another process writes.
    pub busy_timeout: Duration,
    /// Payloads up to this many bytes are stored in their job's row. Larger ones go to a table of their own, so that
    /// updates of the row do not write them again.
    pub inline_payload: usize,
    /// The position on the ring of tenants at which turns start; see [`orchestrix_core::turn`]. Random, so that
    /// processes that claim once and exit favour no tenant. Tests set it to repeat a run.
    pub first_turn: i64,
}

impl SqliteOptions {
    /// The defaults: the machine's clock, 4 readers, a lock timeout of 10 s, and a random first turn.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            clock: Arc::new(SystemClock),
            readers: 4,
            busy_timeout: Duration::from_secs(10),
            inline_payload: 512,
            first_turn: rand::random(),
        }
    }

    /// Clamps the options to values that the store can work with.
    pub(crate) fn clamped(self) -> Self {
        let day = Duration::from_secs(24 * 3600);
        Self { readers: self.readers.clamp(1, 1_000), busy_timeout: self.busy_timeout.min(day), ..self }
    }

    /// The defaults for `sqlite:PATH`.
    pub fn from_url(url: &str) -> Result<Self, FieldError> {
        match url.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path)) {
            None => Err(FieldError::new("database", "must be sqlite:PATH")),
            Some("") => Err(FieldError::new("database", "sqlite: needs the path of a file, as in sqlite:jobs.db")),
            Some(":memory:") => Err(FieldError::new("database", "use memory: for a store in memory")),
            Some(path) => Ok(Self::new(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_url_names_a_file() {
        for (url, path) in
            [("sqlite:jobs.db", "jobs.db"), ("sqlite:/var/jobs.db", "/var/jobs.db"), ("sqlite:///var/j", "/var/j")]
        {
            assert_eq!(SqliteOptions::from_url(url).unwrap().path, Path::new(path));
        }
        for url in ["sqlite:", "sqlite://", "sqlite::memory:", "postgres://host", "jobs.db"] {
            assert!(SqliteOptions::from_url(url).is_err(), "{url}");
        }
    }
}
