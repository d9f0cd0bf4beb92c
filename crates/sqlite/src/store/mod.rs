//! [`SqliteStore`], and the store traits that it implements: each checks its arguments and runs one verb on the writer
//! or on a reader.

mod admin;
mod coordination;
mod jobs;
mod leases;
mod queues;
mod schedules;
mod tenants;
mod workers;

use std::sync::Arc;

use async_trait::async_trait;
use orchestrix_core::Timestamp;
use orchestrix_store::{Result, Store, Wakeups, operation::Unreadable, wakeup::WakeupSender};

use crate::{database::Database, options::SqliteOptions};

/// A [`Store`] in one SQLite file. Clones share its connections.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::env::temp_dir().join(format!("orchestrix-doc-{}.db", std::process::id()));
/// use orchestrix_sqlite::{SqliteOptions, SqliteStore};
///
/// let store = SqliteStore::open(SqliteOptions::new(&path)).await?;
/// // …
/// store.close().await;
/// # std::fs::remove_file(path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SqliteStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    database: Database,
    wakeups: WakeupSender,
    unreadable: Unreadable,
}

impl SqliteStore {
    /// Opens the file. Creates or migrates it if necessary.
    pub async fn open(options: SqliteOptions) -> Result<Self> {
        let wakeups = WakeupSender::default();
        let database = Database::open(options, wakeups.clone()).await?;
        Ok(Self(Arc::new(Inner { database, wakeups, unreadable: Unreadable::default() })))
    }

    /// Waits for running calls, closes the file and merges the write-ahead log into it. Calls on clones fail
    /// afterwards.
    ///
    /// A store that is dropped does the same in the background, and the end of the process may cut that short. No
    /// acknowledged write is lost either way.
    pub async fn close(self) {
        self.database().close().await;
    }

    fn database(&self) -> &Database {
        &self.0.database
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn now(&self) -> Result<Timestamp> {
        self.database().read(|session| Ok(session.now)).await
    }

    fn job_wakeups(&self) -> Wakeups {
        self.0.wakeups.subscribe()
    }

    fn timer_wakeups(&self) -> Wakeups {
        self.0.wakeups.timers()
    }

    // The store depends on no runtime: the writer is a thread of its own, and reads run on the runtime of their
    // caller. So a clone is as independent as a handle can be.
    fn dedicated_handle(&self, _connections: usize) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.clone()))
    }
}
