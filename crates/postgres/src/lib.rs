//! The Orchestrix store on PostgreSQL 15 and later.
//!
//! Every unfinished job is one narrow row that is updated in place. Finished jobs move to history, which is
//! partitioned by day and dropped by day. Statements are static text, one file per verb in `queries/`. Most verbs are
//! a single statement. The others read, let `core` decide, and write only if nothing has changed since. Only calls
//! that write several things at once use an explicit transaction.
//!
//! No call relies on state that another call left on a connection: with [`PostgresOptions::pooled`] the store works
//! behind a pooler in transaction mode.
//!
//! An application on the same database can enqueue and complete jobs in its own transaction, with
//! [`PostgresStore::enqueue_in`] and [`PostgresStore::complete_in`]. They accept transactions of `tokio-postgres` and
//! `deadpool-postgres`, and with the feature `sqlx` those of `sqlx`.
//!
//! The store does not use session locks, temporary tables, triggers on the hot path, `count(*)` over a backlog, or
//! NOTIFY in a producer's transaction.

mod admin;
mod audit;
mod batch_size;
mod bulk_step;
mod caller_transaction;
mod changes;
mod claim;
mod coalesce;
mod coordination;
mod database;
mod dependents;
pub mod diagnose;
mod effects;
mod enqueue;
mod error;
mod fenced_tx;
mod finish;
mod fire;
mod ids;
mod inspect;
mod job;
mod job_actions;
mod job_columns;
mod key;
mod known_turns;
mod lease;
mod migrate;
mod occurrences;
mod operation;
mod options;
mod planned_firing;
mod prune;
mod queue;
mod ready;
mod row;
mod runner;
mod schedule;
mod settle;
mod statement;
mod sweeps;
mod tenant;
#[cfg(feature = "test-clock")]
pub mod test_clock;
mod trigger;
mod vacuum;
mod wakeup;
mod worker;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use orchestrix_core::Timestamp;
use orchestrix_store::{Result, Store, StoreError, Wakeups, operation::Unreadable, wakeup::WakeupSender};
use tokio::task::AbortHandle;

pub use caller_transaction::CallerTransaction;
pub use ids::IdSource;
pub use migrate::SCHEMA_VERSION;
pub use options::PostgresOptions;
#[cfg(feature = "sqlx")]
pub use sqlx;
pub use {deadpool_postgres, tokio_postgres};

use crate::{
    batch_size::BatchSizer, changes::SummaryTimer, coalesce::Coalescer, database::Database,
    dependents::background::WaitingParents, effects::Publisher, known_turns::KnownTurns, ready::RepairProgress,
    vacuum::VacuumProgress,
};

/// A store in a PostgreSQL database.
#[derive(Debug, Clone)]
pub struct PostgresStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    database: Database,
    coalescer: Coalescer,
    publisher: Publisher,
    listener: OnceLock<AbortHandle>,
    /// The size of the next batch of schedules to fire.
    batch_sizer: BatchSizer,
    /// Operations that a newer version wrote and that were logged already.
    unreadable: Unreadable,
    summary_timer: SummaryTimer,
    repair_progress: RepairProgress,
    vacuum_progress: VacuumProgress,
    /// Finished parents whose dependents the background task resolves.
    waiting_parents: Arc<WaitingParents>,
}

impl Inner {
    fn new(database: Database, publisher: Publisher) -> Self {
        Self {
            coalescer: Coalescer::new(&database, &publisher),
            database,
            publisher,
            listener: OnceLock::new(),
            batch_sizer: BatchSizer::default(),
            unreadable: Unreadable::default(),
            summary_timer: SummaryTimer::default(),
            repair_progress: RepairProgress::default(),
            vacuum_progress: VacuumProgress::default(),
            waiting_parents: Arc::default(),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.get() {
            listener.abort();
        }
        self.database.close();
    }
}

impl PostgresStore {
    /// Connects, and waits for a database that is still starting. Applies pending migrations, unless
    /// [`PostgresOptions::migrate`] is off: then a database that lacks any is [`StoreError::Schema`].
    pub async fn open(options: PostgresOptions) -> Result<Self> {
        let database = Database::new(options.clone())?;
        migrate::wait_until_up(&database).await?;
        if options.migrate {
            migrate::migrate(&database).await?;
        } else {
            Self::check_version(&database).await?;
        }
        let publisher =
            Publisher::start(&database, Arc::new(KnownTurns::starting_at(options.first_turn)), WakeupSender::default());
        let inner = Arc::new(Inner::new(database, publisher));
        if options.listen {
            let task = tokio::spawn(wakeup::listen(options, Arc::downgrade(&inner)));
            let _ = inner.listener.set(task.abort_handle());
        }
        Ok(Self(inner))
    }

    // The schema was checked when `self` was opened. Only `self` listens; both handles share its cursors and
    // subscribers.
    fn with_own_connections(&self, connections: usize) -> Result<Self> {
        if let Err(error) = tokio::runtime::Handle::try_current() {
            return Err(StoreError::Backend(Box::new(error)));
        }
        let database = Database::new(PostgresOptions { connections, ..self.database().options.clone() })?;
        let publisher = self.publisher().for_database(&database);
        Ok(Self(Arc::new(Inner::new(database, publisher))))
    }

    /// How many migrations the database lacks. Applies none.
    pub async fn pending_migrations(options: PostgresOptions) -> Result<usize> {
        let database = Database::new(options)?;
        migrate::wait_until_up(&database).await?;
        let version = migrate::current_version(&database.connection().await?).await?;
        migrate::refuse_newer(version)?;
        Ok(usize::try_from(SCHEMA_VERSION - version).unwrap_or(0))
    }

    async fn check_version(database: &Database) -> Result<()> {
        let version = migrate::current_version(&database.connection().await?).await?;
        migrate::refuse_newer(version)?;
        if version < SCHEMA_VERSION {
            return Err(StoreError::Schema(format!(
                "the database has schema version {version}, this program needs {SCHEMA_VERSION}: apply the migrations first"
            )));
        }
        Ok(())
    }

    /// Waits until other processes were notified of the jobs enqueued so far. Call it before a program exits right
    /// after an enqueue; without it other processes find the jobs by polling.
    pub async fn flush(&self) {
        self.publisher().flush().await;
    }

    fn database(&self) -> &Database {
        &self.0.database
    }

    fn publisher(&self) -> &Publisher {
        &self.0.publisher
    }

    fn repair_progress(&self) -> &RepairProgress {
        &self.0.repair_progress
    }

    fn vacuum_progress(&self) -> &VacuumProgress {
        &self.0.vacuum_progress
    }

    fn known_turns(&self) -> &KnownTurns {
        self.publisher().known_turns()
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn now(&self) -> Result<Timestamp> {
        inspect::now(self).await
    }

    fn job_wakeups(&self) -> Wakeups {
        self.publisher().wakeups().subscribe()
    }

    fn timer_wakeups(&self) -> Wakeups {
        self.publisher().wakeups().timers()
    }

    fn dedicated_handle(&self, connections: usize) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(self.with_own_connections(connections)?))
    }
}
