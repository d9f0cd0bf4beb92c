//! Enqueuing and completing jobs in the caller's own transaction, atomically with the caller's other writes.
//!
//! The store never commits the transaction or rolls it back. It works behind a savepoint, so a refused job, an
//! idempotency key that another transaction holds, or a lost lease leaves the transaction unchanged and usable. A
//! call that is dropped before it returns is undone as well. Lock waits are limited by
//! [`PostgresOptions::lock_timeout`], or by the transaction's own limit where that is shorter.
//!
//! The transaction contains no NOTIFY, which would serialize its commit with every other notifying transaction.
//! Workers find the jobs by polling within a second of the commit, or at once if the caller then calls
//! [`notify`](PostgresStore::notify).

use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use orchestrix_core::{
    JobState, Json, LeaseToken, NewJob, Queue,
    enqueue::{Call, CallShape, check_jobs},
};
use orchestrix_store::{Enqueued, Result, StoreError};
use tokio_postgres::types::{ToSql, Type};

use crate::{
    PostgresOptions, PostgresStore,
    effects::Effects,
    enqueue::{KEY_RACES, enqueue_call, keys_contended},
    error::store_error,
    job_columns::millis,
    runner::{AnyRow, Param, Runner},
    statement::{COMPLETE_JOBS, LIMIT_LOCK_WAIT, RESTORE_LOCK_WAIT, Statement},
};
#[cfg(feature = "sqlx")]
use crate::{error::sqlx_error, runner};

/// A transaction on the store's database that the caller began and will end.
///
/// Converts from `&tokio_postgres::Transaction` and `&deadpool_postgres::Transaction`. With the feature `sqlx` it also
/// converts from `&mut sqlx::Transaction`, and from a `&mut sqlx::PgConnection` in a transaction that sqlx began.
pub struct CallerTransaction<'t>(Driver<'t>);

enum Driver<'t> {
    Tokio(&'t tokio_postgres::Transaction<'t>),
    #[cfg(feature = "sqlx")]
    Sqlx(&'t mut sqlx::PgConnection),
}

impl std::fmt::Debug for CallerTransaction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallerTransaction").finish_non_exhaustive()
    }
}

impl<'t> From<&'t tokio_postgres::Transaction<'_>> for CallerTransaction<'t> {
    fn from(transaction: &'t tokio_postgres::Transaction<'_>) -> Self {
        Self(Driver::Tokio(transaction))
    }
}

impl<'t> From<&'t deadpool_postgres::Transaction<'_>> for CallerTransaction<'t> {
    fn from(transaction: &'t deadpool_postgres::Transaction<'_>) -> Self {
        Self(Driver::Tokio(transaction))
    }
}

#[cfg(feature = "sqlx")]
impl<'t> From<&'t mut sqlx::PgConnection> for CallerTransaction<'t> {
    fn from(connection: &'t mut sqlx::PgConnection) -> Self {
        Self(Driver::Sqlx(connection))
    }
}

#[cfg(feature = "sqlx")]
impl<'t> From<&'t mut sqlx::Transaction<'_, sqlx::Postgres>> for CallerTransaction<'t> {
    fn from(transaction: &'t mut sqlx::Transaction<'_, sqlx::Postgres>) -> Self {
        Self(Driver::Sqlx(transaction))
    }
}

impl PostgresStore {
    /// Enqueues all of `jobs` in the caller's transaction, or none. Either way the transaction stays usable. The jobs
    /// exist and are claimable once it commits.
    ///
    /// Idempotency keys and dependencies work as in [`enqueue_jobs`](orchestrix_store::JobStore::enqueue_jobs). The
    /// call waits for a key that another transaction is inserting, and returns [`StoreError::Unavailable`] after
    /// [`PostgresOptions::lock_timeout`]. A transaction that is not READ COMMITTED gets the same error for a key
    /// inserted since it began, and must be retried. Unfinished parents stay locked, and cannot finish, until the
    /// transaction ends. A job whose parent is cancelled in this call, because that parent's own parent failed, is
    /// returned as enqueued and cancelled soon after the commit.
    ///
    /// ```no_run
    /// # use orchestrix_core::{JobType, NewJob};
    /// # use orchestrix_postgres::{PostgresStore, tokio_postgres};
    /// # async fn order(store: &PostgresStore, client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let tx = client.transaction().await?;
    /// tx.execute("INSERT INTO orders (id) VALUES ($1)", &[&7]).await?;
    /// let job = NewJob::new(JobType::new("order.confirm")?);
    /// let queue = job.queue.clone();
    /// store.enqueue_in(&tx, vec![job]).await?;
    /// tx.commit().await?;
    /// store.notify(&[queue]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enqueue_in<'t>(
        &self,
        tx: impl Into<CallerTransaction<'t>>,
        jobs: Vec<NewJob>,
    ) -> Result<Vec<Enqueued>> {
        let parents = check_jobs(&jobs)?;
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let mut tx = tx.into();
        let options = &self.database().options;
        let call = Call { jobs: &jobs, parents: &parents, shape: CallShape::Batch };
        for _ in 0..KEY_RACES {
            let mut savepoint = tx.savepoint(options).await?;
            match enqueue_call(&mut savepoint, options, call).await {
                Ok(Some(enqueued)) => {
                    savepoint.release().await?;
                    let pending = |job: &&Enqueued| job.state == JobState::Pending && !job.duplicate;
                    for (job, _) in jobs.iter().zip(&enqueued).filter(|(_, enqueued)| pending(enqueued)) {
                        self.known_turns().add_uncommitted(&job.queue, &job.job_type);
                    }
                    return Ok(enqueued);
                }
                Ok(None) => savepoint.rollback().await?,
                Err(error) => return Err(savepoint.rollback_after(error).await),
            }
        }
        Err(keys_contended())
    }

    /// Completes the job of `token` in the caller's transaction: the job is completed if and only if the transaction
    /// commits.
    ///
    /// Returns [`StoreError::LeaseLost`] if the token is no longer current. The transaction stays usable, but a
    /// caller that wrote on behalf of the job should roll it back. After the commit,
    /// [`finish_attempts`](orchestrix_store::LeaseStore::finish_attempts) accepts the same result as a repeat. The
    /// leader resolves the job's dependents soon after the commit.
    ///
    /// The job's row stays locked until the transaction ends, and its lease cannot be extended meanwhile. So complete
    /// the job last, then commit.
    pub async fn complete_in<'t>(
        &self,
        tx: impl Into<CallerTransaction<'t>>,
        token: LeaseToken,
        result: Option<Json>,
    ) -> Result<()> {
        let mut tx = tx.into();
        let mut savepoint = tx.savepoint(&self.database().options).await?;
        let (ids, counters, secrets) = ([token.job.as_uuid()], [token.counter], [token.secret]);
        let results = [result.as_ref().map(|json| json.as_str())];
        let params = [Param::Uuids(&ids), Param::Int4s(&counters), Param::Uuids(&secrets), Param::MaybeTexts(&results)];
        match savepoint.run(&COMPLETE_JOBS, &params).await {
            Ok(rows) if rows.is_empty() => Err(savepoint.rollback_after(StoreError::LeaseLost).await),
            Ok(_) => savepoint.release().await,
            Err(error) => Err(savepoint.rollback_after(error).await),
        }
    }

    /// Wakes workers, here and in other processes, after the caller committed jobs in `queues` by itself. Also wakes
    /// the leader, for jobs that wait for a time or a parent. Without this call, polling finds the jobs within a
    /// second.
    pub fn notify(&self, queues: &[Queue]) {
        let mut effects = Effects::default();
        for queue in queues {
            self.known_turns().confirm_uncommitted(queue);
            effects.queue_claimable(queue.clone());
        }
        effects.timer_set();
        self.publisher().publish(effects);
    }
}

impl CallerTransaction<'_> {
    async fn savepoint(&mut self, options: &PostgresOptions) -> Result<Savepoint<'_>> {
        let limit = options.statement_timeout + Duration::from_secs(5);
        let mark = match &mut self.0 {
            Driver::Tokio(transaction) => Mark::Tokio(TokioMark::set(transaction, limit).await?),
            #[cfg(feature = "sqlx")]
            Driver::Sqlx(connection) => {
                // sqlx does not know a transaction that was begun by text: it would begin and commit its own.
                if !sqlx::Connection::is_in_transaction(&**connection) {
                    return Err(StoreError::Backend(
                        "the connection is not in a transaction that sqlx began: call begin() on it first".into(),
                    ));
                }
                let begin = sqlx::Connection::begin(&mut **connection);
                Mark::Sqlx(within(limit, begin).await?.map_err(sqlx_error)?)
            }
        };
        let mut savepoint = Savepoint { mark, limit, lock_timeout: String::new() };
        let rows = savepoint.run(&LIMIT_LOCK_WAIT, &[Param::Int8(millis(options.lock_timeout).max(1))]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Backend("limit_lock_wait.sql returned no row".into()))?;
        savepoint.lock_timeout = row.get("lock_timeout")?;
        Ok(savepoint)
    }
}

/// A savepoint in the caller's transaction. Dropping it rolls back to it.
struct Savepoint<'s> {
    mark: Mark<'s>,
    limit: Duration,
    /// The transaction's own lock timeout.
    lock_timeout: String,
}

enum Mark<'s> {
    Tokio(TokioMark<'s>),
    #[cfg(feature = "sqlx")]
    Sqlx(sqlx::Transaction<'s, sqlx::Postgres>),
}

impl Savepoint<'_> {
    async fn release(mut self) -> Result<()> {
        let lock_timeout = std::mem::take(&mut self.lock_timeout);
        self.run(&RESTORE_LOCK_WAIT, &[Param::Text(&lock_timeout)]).await?;
        match self.mark {
            Mark::Tokio(mark) => mark.end("RELEASE SAVEPOINT orchestrix", self.limit).await,
            #[cfg(feature = "sqlx")]
            Mark::Sqlx(transaction) => within(self.limit, transaction.commit()).await?.map_err(sqlx_error),
        }
    }

    // The rollback restores the lock timeout too.
    async fn rollback(self) -> Result<()> {
        match self.mark {
            Mark::Tokio(mark) => mark.end(ROLLBACK, self.limit).await,
            #[cfg(feature = "sqlx")]
            Mark::Sqlx(transaction) => within(self.limit, transaction.rollback()).await?.map_err(sqlx_error),
        }
    }

    /// Rolls back because of `error` and returns it. An error of the rollback itself is only logged.
    async fn rollback_after(self, error: StoreError) -> StoreError {
        if let Err(error) = self.rollback().await {
            tracing::debug!(%error, "rollback to a savepoint in a caller's transaction failed");
        }
        error
    }
}

#[async_trait]
impl Runner for Savepoint<'_> {
    async fn run(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<AnyRow>> {
        match &mut self.mark {
            Mark::Tokio(mark) => {
                let params = Param::all(params);
                let typed: Vec<(&(dyn ToSql + Sync), Type)> =
                    params.into_iter().zip(statement.types.iter().cloned()).collect();
                let rows = within(self.limit, mark.transaction.query_typed(statement.sql, &typed)).await?;
                Ok(rows.map_err(store_error)?.into_iter().map(AnyRow::Tokio).collect())
            }
            #[cfg(feature = "sqlx")]
            Mark::Sqlx(transaction) => {
                let arguments = runner::sqlx_arguments(params)?;
                // Not kept as a prepared statement: its plan may have been made while the tables were empty.
                let query = sqlx::query_with(statement.sql, arguments).persistent(false);
                let rows = within(self.limit, query.fetch_all(&mut **transaction)).await?;
                Ok(rows.map_err(sqlx_error)?.into_iter().map(AnyRow::Sqlx).collect())
            }
        }
    }
}

const ROLLBACK: &str = "ROLLBACK TO SAVEPOINT orchestrix; RELEASE SAVEPOINT orchestrix";

/// A savepoint by text: a borrowed `tokio_postgres` transaction offers no other.
struct TokioMark<'s> {
    transaction: &'s tokio_postgres::Transaction<'s>,
    set: bool,
}

impl<'s> TokioMark<'s> {
    async fn set(transaction: &'s tokio_postgres::Transaction<'s>, limit: Duration) -> Result<Self> {
        // The statement is sent at the first poll, so the savepoint counts as set before the answer.
        let mut mark = Self { transaction, set: true };
        let answer = within(limit, transaction.batch_execute("SAVEPOINT orchestrix")).await?;
        mark.set = answer.is_ok();
        answer.map_err(store_error)?;
        Ok(mark)
    }

    async fn end(mut self, sql: &str, limit: Duration) -> Result<()> {
        // The statement is sent at the first poll, after which there is nothing left to roll back.
        self.set = false;
        within(limit, self.transaction.batch_execute(sql)).await?.map_err(store_error)
    }
}

impl Drop for TokioMark<'_> {
    fn drop(&mut self) {
        if self.set {
            // One poll sends the rollback, ahead of the caller's next statement. Its answer is discarded.
            let _ = self.transaction.batch_execute(ROLLBACK).now_or_never();
        }
    }
}

// The server may have a time limit of its own. This one covers a server that does not answer at all.
async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T> {
    let answer = tokio::time::timeout(limit, work).await;
    answer.map_err(|_| StoreError::Unavailable(format!("no answer within {limit:?} in the caller's transaction")))
}
