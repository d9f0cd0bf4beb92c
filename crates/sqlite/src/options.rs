//! Where the file is and how to behave there.

use std::{path::PathBuf, sync::Arc, time::Duration};

use orchestrix_core::FieldError;
use orchestrix_store::{Clock, SystemClock};

/// Where the file is and how this process uses it.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// The file; made if there is none, its directory is not. It must not be on a network file system.
    pub path: PathBuf,
    /// Whose time it is. Processes that share a file share a machine, so its clock is everybody's.
    pub clock: Arc<dyn Clock>,
    /// The most reads at once.
    pub readers: usize,
    /// How long to wait for another process that is writing.
    pub busy_timeout: Duration,
    /// Payloads up to this many bytes live in their job's row; larger ones apart, so that they are written once.
    pub inline_payload: usize,
}

impl SqliteOptions {
    /// The defaults: this machine's clock, 4 readers, 10 s of patience.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            clock: Arc::new(SystemClock),
            readers: 4,
            busy_timeout: Duration::from_secs(10),
            inline_payload: 512,
        }
    }

    /// The same with numbers that can be worked with.
    pub(crate) fn within_reason(self) -> Self {
        let day = Duration::from_secs(24 * 3600);
        Self { readers: self.readers.clamp(1, 1_000), busy_timeout: self.busy_timeout.min(day), ..self }
    }

    /// The defaults for `sqlite:PATH`.
    pub fn from_url(url: &str) -> Result<Self, FieldError> {
        match url.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path)) {
            None => Err(FieldError::new("database", "must be sqlite:PATH")),
            Some("") => Err(FieldError::new("database", "sqlite: needs the path of a file, as in sqlite:jobs.db")),
            Some(":memory:") => Err(FieldError::new("database", "a store in memory is called memory:")),
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
