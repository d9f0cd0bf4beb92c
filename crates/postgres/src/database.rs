//! Pooled connections, with a time limit on every wait.

use std::{
    str::FromStr,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Metrics, Object, Pool, PoolError, QueueMode,
    RecyclingMethod, Runtime, Timeouts,
};
use orchestrix_store::{Result, StoreError};
use tokio_postgres::{
    Config, NoTls, Row,
    types::{ToSql, Type},
};

use crate::{
    PostgresOptions,
    error::{describe, is_conflict, store_error},
    statement::Statement,
};

/// Parameters of a statement.
pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// How often a statement is sent again after it lost a conflict.
const CONFLICT_RETRIES: usize = 5;

/// How long a connection keeps its cached plans. A queue is empty at one moment and full at the next, and the server
/// keeps a plan until it has new statistics, a minute later at best: a plan for an empty table would scan the full
/// one in every statement. Planning every time would cost more than most statements.
const PLAN_LIFE: Duration = Duration::from_secs(1);

/// How long the server gets to cancel an abandoned statement.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// A pool of connections to one database.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pool: Pool,
    pub(crate) options: PostgresOptions,
}

/// One connection, for as long as it is held.
pub(crate) struct Connection<'a> {
    // `None` only in `drop`.
    client: Option<Object>,
    options: &'a PostgresOptions,
    // Whether a statement is unanswered or a transaction is open.
    unfinished: AtomicBool,
}

/// The connection settings of the URL with the store's timeouts.
pub(crate) fn config(options: &PostgresOptions) -> Result<Config> {
    let mut config = Config::from_str(&options.url)
        .map_err(|error| StoreError::Unavailable(format!("the database URL is not valid: {}", describe(&error))))?;
    config.connect_timeout(options.connect_timeout);
    config.keepalives_idle(Duration::from_secs(30));
    config.tcp_user_timeout(options.statement_timeout + Duration::from_secs(15));
    if config.get_application_name().is_none() {
        config.application_name("orchestrix");
    }
    if options.session_settings {
        // JIT costs more than it gains on statements of a millisecond. No statement needs a sequential scan of a large
        // table, but a plan made while the table was small would keep one. The guards rely on READ COMMITTED, whatever
        // the database's default.
        let own = format!(
            "-c statement_timeout={} -c lock_timeout={} -c idle_in_transaction_session_timeout={} -c jit=off \
             -c enable_seqscan=off -c default_transaction_isolation=read\\ committed",
            options.statement_timeout.as_millis(),
            options.lock_timeout.as_millis(),
            options.statement_timeout.as_millis(),
        );
        let all = match config.get_options() {
            Some(url) => format!("{own} {url}"),
            None => own,
        };
        config.options(all);
    }
    Ok(config)
}

impl Database {
    /// Creates a pool that opens connections on demand.
    pub(crate) fn new(options: PostgresOptions) -> Result<Self> {
        let manager =
            Manager::from_config(config(&options)?, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let wait = Some(options.statement_timeout);
        let limit = options.connect_timeout;
        let discard = Hook::async_fn(move |client, metrics| Box::pin(discard_old_plans(client, metrics, limit)));
        let mut builder = Pool::builder(manager);
        if options.prepare {
            builder = builder.pre_recycle(discard);
        }
        let pool = builder
            .max_size(options.connections.max(1))
            .timeouts(Timeouts {
                wait,
                create: Some(options.connect_timeout * 2),
                recycle: Some(options.connect_timeout),
            })
            // The connection used last has warm plans and caches on the server.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::Backend(Box::new(error)))?;
        Ok(Self { pool, options })
    }

    /// Takes a connection from the pool.
    pub(crate) async fn connection(&self) -> Result<Connection<'_>> {
        match self.pool.get().await {
            Ok(client) => {
                Ok(Connection { client: Some(client), options: &self.options, unfinished: AtomicBool::new(false) })
            }
            Err(PoolError::Backend(error)) => Err(store_error(error)),
            Err(PoolError::Timeout(_)) => Err(StoreError::Unavailable(format!(
                "no connection became free within {:?}",
                self.options.statement_timeout
            ))),
            Err(error) => Err(StoreError::Unavailable(error.to_string())),
        }
    }

    /// Runs one statement as a transaction of its own. Sends it again if it lost a conflict, which rolled it back.
    pub(crate) async fn query(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>> {
        self.try_query(statement, params).await?.map_err(store_error)
    }

    /// Like [`query`](Database::query); the inner error is the server's, for callers that inspect it.
    pub(crate) async fn try_query(
        &self,
        statement: &Statement,
        params: Params<'_>,
    ) -> Result<Result<Vec<Row>, tokio_postgres::Error>> {
        let connection = self.connection().await?;
        for _ in 0..CONFLICT_RETRIES {
            match connection.try_query(statement, params).await? {
                Err(error) if is_conflict(&error) => {
                    tracing::debug!(statement = statement.name, error = describe(&error), "retrying after a conflict");
                }
                answer => return Ok(answer),
            }
        }
        connection.try_query(statement, params).await
    }

    /// Closes the pool: connections are closed as they are returned.
    pub(crate) fn close(&self) {
        self.pool.close();
    }
}

// Runs before a connection is reused. Discards its plans at the first reuse in every interval of PLAN_LIFE.
async fn discard_old_plans(client: &ClientWrapper, metrics: &Metrics, limit: Duration) -> Result<(), HookError> {
    let interval = |at: Instant| at.duration_since(metrics.created).as_millis() / PLAN_LIFE.as_millis();
    if interval(metrics.recycled.unwrap_or(metrics.created)) == interval(Instant::now()) {
        return Ok(());
    }
    match tokio::time::timeout(limit, client.batch_execute("DISCARD PLANS")).await {
        Ok(answer) => answer.map_err(HookError::Backend),
        Err(_) => Err(HookError::message("no answer to DISCARD PLANS")),
    }
}

impl Connection<'_> {
    /// Runs one statement.
    pub(crate) async fn query(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>> {
        self.try_query(statement, params).await?.map_err(store_error)
    }

    pub(crate) async fn try_query(
        &self,
        statement: &Statement,
        params: Params<'_>,
    ) -> Result<Result<Vec<Row>, tokio_postgres::Error>> {
        let run = async {
            if self.options.prepare {
                let prepared = self.client().prepare_typed_cached(statement.sql, statement.types).await?;
                self.client().query(&prepared, params).await
            } else {
                debug_assert_eq!(params.len(), statement.types.len(), "{}", statement.name);
                let typed: Vec<(&(dyn ToSql + Sync), Type)> =
                    params.iter().copied().zip(statement.types.iter().cloned()).collect();
                self.client().query_typed(statement.sql, &typed).await
            }
        };
        self.within(self.options.statement_timeout, statement.name, run).await
    }

    /// Sends text that is not a prepared statement: BEGIN, COMMIT, DDL.
    pub(crate) async fn execute(&self, sql: &str) -> Result<()> {
        self.try_execute(sql).await?.map_err(store_error)
    }

    /// Like [`execute`](Connection::execute); the inner error is the server's, for callers that inspect it.
    pub(crate) async fn try_execute(&self, sql: &str) -> Result<Result<(), tokio_postgres::Error>> {
        self.within(self.options.statement_timeout, sql, self.client().batch_execute(sql)).await
    }

    /// Like [`execute`](Connection::execute), with another time limit, for migrations.
    pub(crate) async fn execute_within(&self, limit: Duration, sql: &str) -> Result<()> {
        self.within(limit, sql, self.client().batch_execute(sql)).await?.map_err(store_error)
    }

    /// Queries by text without parameters, and without a prepared statement.
    pub(crate) async fn fetch(&self, sql: &str) -> Result<Vec<Row>> {
        self.within(self.options.statement_timeout, sql, self.client().query_typed(sql, &[]))
            .await?
            .map_err(store_error)
    }

    // The server has its own time limit; this one covers a server that does not answer at all. Until the answer the
    // connection is unfinished: a caller that gives up, by this limit or by being dropped, closes it.
    async fn within<T>(&self, limit: Duration, what: &str, work: impl Future<Output = T>) -> Result<T> {
        let limit = limit + Duration::from_secs(5);
        let before = self.unfinished.swap(true, Ordering::Relaxed);
        let Ok(answer) = tokio::time::timeout(limit, work).await else {
            let cancel = self.client().cancel_token();
            // In the background: it only frees the server sooner, and the connection is not used again.
            tokio::spawn(async move { tokio::time::timeout(CANCEL_LIMIT, cancel.cancel_query(NoTls)).await });
            return Err(StoreError::Unavailable(format!("no answer within {limit:?}: {what}")));
        };
        self.unfinished.store(before, Ordering::Relaxed);
        Ok(answer)
    }

    /// Runs `work`, which uses this connection, in a transaction: commits after `Ok` and rolls back after an error.
    pub(crate) async fn transaction<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.begin("").await?;
        let answer = work.await;
        self.end(answer.is_ok()).await?;
        answer
    }

    /// Like [`transaction`](Connection::transaction), but also rolls back after `Ok(None)`.
    pub(crate) async fn attempt<T>(&self, work: impl Future<Output = Result<Option<T>>>) -> Result<Option<T>> {
        self.begin("").await?;
        let answer = work.await;
        self.end(matches!(answer, Ok(Some(_)))).await?;
        answer
    }

    async fn end(&self, commit: bool) -> Result<()> {
        self.execute(if commit { "COMMIT" } else { "ROLLBACK" }).await?;
        self.unfinished.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Begins a transaction with these settings. It lasts until [`commit`](Connection::commit) or
    /// [`rollback`](Connection::rollback); a connection dropped before that is closed.
    pub(crate) async fn begin(&self, settings: &str) -> Result<()> {
        self.execute(&format!("BEGIN ISOLATION LEVEL READ COMMITTED; {settings}")).await?;
        self.unfinished.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Commits the transaction.
    pub(crate) async fn commit(&self) -> Result<()> {
        self.end(true).await
    }

    /// Rolls the transaction back.
    pub(crate) async fn rollback(&self) -> Result<()> {
        self.end(false).await
    }

    fn client(&self) -> &Object {
        self.client.as_ref().expect("the client is present until drop")
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        // The caller was dropped before the statement or transaction ended: close the connection, so that the server
        // rolls back and the pool opens another.
        if let Some(client) = self.client.take()
            && self.unfinished.load(Ordering::Relaxed)
        {
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) if !client.is_closed() => drop(runtime.spawn(abandon(client))),
                _ => drop(Object::take(client)),
            }
        }
    }
}

// Keeps the connection's slot in the pool until the server has cancelled the statement. If it were closed at once, its
// session would go on running, or waiting for a lock, beside the one that the pool opens instead: dropped callers of a
// slow database would use more sessions than the pool allows.
async fn abandon(client: Object) {
    let stopped = async {
        // Cancelling is best effort. The empty statement is answered once the session is idle.
        let _ = client.cancel_token().cancel_query(NoTls).await;
        let _ = client.batch_execute("").await;
    };
    let _ = tokio::time::timeout(CANCEL_LIMIT, stopped).await;
    drop(Object::take(client));
}
