//! Jobs in the caller's own transaction: recorded, or completed, together with whatever else it writes.
//!
//! The transaction stays the caller's. Nothing here commits it or rolls it back; what is done is done behind a savepoint, so
//! that a job that is refused, a key that somebody else is taking or a lease that is lost leaves it as it was, and usable. A
//! call that is given up half way is undone as well. Waits for locks are bound by [`PostgresOptions::lock_timeout`], or by the
//! transaction's own where that is shorter.
//!
//! What is deliberately absent: NOTIFY in the transaction, which would make its commit wait for every other that notifies.
//! Jobs are found by polling within a second of the commit, or at once if the caller then says
//! [`notify`](PostgresStore::notify).

use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use orchestrix_core::{
    JobState, Json, LeaseToken, NewJob, Queue, Timestamp,
    enqueue::{Call, CallShape, check_jobs},
};
use orchestrix_store::{Enqueued, Result, StoreError, Wakeup};
use tokio_postgres::types::{ToSql, Type};

use crate::{
    PostgresOptions, PostgresStore,
    enqueue::{KEY_RACES, keys_contended, record_graph},
    error::store_error,
    lanes::Place,
    record::millis,
    row::corrupt,
    runner::{Param, Record, Runner},
    statement::{BOUND_LOCKS, COMPLETE, RESTORE_LOCKS, Statement},
};
#[cfg(feature = "sqlx")]
use crate::{error::sqlx_error, runner};

/// A transaction that somebody has begun on the store's database and will end.
///
/// Made from `&tokio_postgres::Transaction`, from `&deadpool_postgres::Transaction`, and with the feature `sqlx` from
/// `&mut sqlx::PgConnection` or `&mut sqlx::Transaction` that is in a transaction begun by sqlx.
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
    /// Records all of `jobs` in the caller's transaction, or none of them and leaves it usable. They are there, and claimable,
    /// when it commits, and never were if it does not.
    ///
    /// Keys and dependencies mean what they do in [`enqueue_many`](orchestrix_store::Store::enqueue_many). A key that another
    /// transaction is just taking is waited for; one that is held for longer than
    /// [`PostgresOptions::lock_timeout`] is [`StoreError::Unavailable`]. So is, in a transaction that is not READ COMMITTED, one that
    /// was taken since it began: it has to begin again. Unfinished parents stay locked until the transaction ends, and cannot
    /// finish before; jobs that wait for one which is cancelled at once, because a parent of its own had failed, are answered as
    /// they were recorded and cancelled soon after the commit.
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
            match record_graph(&mut savepoint, options, call).await {
                Ok(Some(recorded)) => {
                    let begun = savepoint.begun;
                    savepoint.keep().await?;
                    let pending = |job: &&Enqueued| job.state == JobState::Pending && !job.duplicate;
                    for (job, _) in jobs.iter().zip(&recorded).filter(|(_, recorded)| pending(recorded)) {
                        let place = Place::before(-job.priority.get(), begun);
                        self.lanes().promised(&job.queue, &job.job_type, place);
                    }
                    return Ok(recorded);
                }
                Ok(None) => savepoint.undo().await?,
                Err(error) => return Err(savepoint.undo_after(error).await),
            }
        }
        Err(keys_contended())
    }

    /// Completes the job of `token` in the caller's transaction: it is done if and only if the transaction commits.
    ///
    /// [`StoreError::LeaseLost`] if the token does not own the job any more, which leaves the transaction usable; whoever
    /// wrote on behalf of the job will want to roll it back. After the commit, telling
    /// [`finish`](orchestrix_store::Store::finish) the same result is answered as the repeat that it is. Jobs that wait for this one are moved on by the
    /// coordinator soon after the commit.
    ///
    /// Until the transaction ends it holds the job's row, and whoever extends the lease, or takes it back, waits for it: complete
    /// last, then commit.
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
        match savepoint.run(&COMPLETE, &params).await {
            Ok(rows) if rows.is_empty() => Err(savepoint.undo_after(StoreError::LeaseLost).await),
            Ok(_) => savepoint.keep().await,
            Err(error) => Err(savepoint.undo_after(error).await),
        }
    }

    /// Hints, here and to other processes, that jobs which the caller has committed by itself may be claimable in `queues`, or
    /// wait for a time or for each other. Only a hint: without it they are found within a second.
    pub fn notify(&self, queues: &[Queue]) {
        for queue in queues {
            self.lanes().kept(queue);
            self.wake(Wakeup::Queue(queue.clone()));
        }
        self.wake_timers();
    }
}

impl CallerTransaction<'_> {
    async fn savepoint(&mut self, options: &PostgresOptions) -> Result<Savepoint<'_>> {
        let limit = options.statement_timeout + Duration::from_secs(5);
        let mark = match &mut self.0 {
            Driver::Tokio(transaction) => Mark::Tokio(TokioMark::set(transaction, limit).await?),
            #[cfg(feature = "sqlx")]
            Driver::Sqlx(connection) => {
                // One that was begun by text is not known to sqlx, which would begin and commit one of its own.
                if !sqlx::Connection::is_in_transaction(&**connection) {
                    return Err(StoreError::Backend(
                        "the connection is not in a transaction that sqlx has begun".into(),
                    ));
                }
                let begin = sqlx::Connection::begin(&mut **connection);
                Mark::Sqlx(within(limit, begin).await?.map_err(sqlx_error)?)
            }
        };
        let mut savepoint = Savepoint { mark, limit, patience: String::new(), begun: Timestamp::UNIX_EPOCH };
        let rows = savepoint.run(&BOUND_LOCKS, &[Param::Int8(millis(options.lock_timeout).max(1))]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Backend("the server does not know its settings".into()))?;
        savepoint.patience = row.get(0)?;
        savepoint.begun = Timestamp::from_microsecond(row.get(1)?).map_err(|error| corrupt("now", error))?;
        Ok(savepoint)
    }
}

/// Part of the caller's transaction that can be undone by itself, and is if it is dropped.
struct Savepoint<'s> {
    mark: Mark<'s>,
    limit: Duration,
    /// How long the transaction waited for locks before.
    patience: String,
    /// The transaction's time, which is that of its jobs.
    begun: Timestamp,
}

enum Mark<'s> {
    Tokio(TokioMark<'s>),
    #[cfg(feature = "sqlx")]
    Sqlx(sqlx::Transaction<'s, sqlx::Postgres>),
}

impl Savepoint<'_> {
    async fn keep(mut self) -> Result<()> {
        let patience = std::mem::take(&mut self.patience);
        self.run(&RESTORE_LOCKS, &[Param::Text(&patience)]).await?;
        match self.mark {
            Mark::Tokio(mark) => mark.end("RELEASE SAVEPOINT orchestrix", self.limit).await,
            #[cfg(feature = "sqlx")]
            Mark::Sqlx(transaction) => within(self.limit, transaction.commit()).await?.map_err(sqlx_error),
        }
    }

    // The settings go back with it.
    async fn undo(self) -> Result<()> {
        match self.mark {
            Mark::Tokio(mark) => mark.end(UNDO, self.limit).await,
            #[cfg(feature = "sqlx")]
            Mark::Sqlx(transaction) => within(self.limit, transaction.rollback()).await?.map_err(sqlx_error),
        }
    }

    /// Undoes it because of `error`, which tells more than that this did not work either.
    async fn undo_after(self, error: StoreError) -> StoreError {
        if let Err(undoing) = self.undo().await {
            tracing::debug!(%undoing, "a savepoint in a caller's transaction could not be undone");
        }
        error
    }
}

#[async_trait]
impl Runner for Savepoint<'_> {
    async fn run(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Record>> {
        match &mut self.mark {
            Mark::Tokio(mark) => {
                let params = Param::all(params);
                let typed: Vec<(&(dyn ToSql + Sync), Type)> =
                    params.into_iter().zip(statement.types.iter().cloned()).collect();
                let rows = within(self.limit, mark.transaction.query_typed(statement.sql, &typed)).await?;
                Ok(rows.map_err(store_error)?.into_iter().map(Record::Ours).collect())
            }
            #[cfg(feature = "sqlx")]
            Mark::Sqlx(transaction) => {
                let arguments = runner::sqlx_arguments(params)?;
                // Planned each time: a plan that is kept may have been made while the tables were empty.
                let query = sqlx::query_with(statement.sql, arguments).persistent(false);
                let rows = within(self.limit, query.fetch_all(&mut **transaction)).await?;
                Ok(rows.map_err(sqlx_error)?.into_iter().map(Record::Sqlx).collect())
            }
        }
    }
}

const UNDO: &str = "ROLLBACK TO SAVEPOINT orchestrix; RELEASE SAVEPOINT orchestrix";

/// A savepoint by text, since a borrowed transaction gives no other.
struct TokioMark<'s> {
    transaction: &'s tokio_postgres::Transaction<'s>,
    set: bool,
}

impl<'s> TokioMark<'s> {
    async fn set(transaction: &'s tokio_postgres::Transaction<'s>, limit: Duration) -> Result<Self> {
        // Counts as set from when it is sent, which is before anything is waited for.
        let mut mark = Self { transaction, set: true };
        let answer = within(limit, transaction.batch_execute("SAVEPOINT orchestrix")).await?;
        mark.set = answer.is_ok();
        answer.map_err(store_error)?;
        Ok(mark)
    }

    async fn end(mut self, sql: &str, limit: Duration) -> Result<()> {
        // It is sent as soon as it is waited for, and then there is nothing left to undo.
        self.set = false;
        within(limit, self.transaction.batch_execute(sql)).await?.map_err(store_error)
    }
}

impl Drop for TokioMark<'_> {
    fn drop(&mut self) {
        if self.set {
            // Sent by the first look at it, before whatever the caller sends next; the answer is nobody's.
            let _ = self.transaction.batch_execute(UNDO).now_or_never();
        }
    }
}

// The server may have a limit of its own; this one is for a server that does not answer at all.
async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T> {
    let answer = tokio::time::timeout(limit, work).await;
    answer.map_err(|_| StoreError::Unavailable(format!("no answer within {limit:?} in the caller's transaction")))
}
