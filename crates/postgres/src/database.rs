//! Connections: pooled, with limits on every wait, opened anew when they break.

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

/// How often a statement that lost to another one is sent again.
const CONFLICT_RETRIES: usize = 5;

/// How long a connection goes on with the plans it has. A queue is empty at one moment and full at the next, and the
/// server keeps a plan until it gathers statistics, a minute later at best: one that was made for an empty table reads
/// a full one from end to end in every statement. To plan every time would cost more than most statements do.
const PLAN_LIFE: Duration = Duration::from_secs(1);

/// How long a server gets to stop what nobody waits for any more.
const STOPPING: Duration = Duration::from_secs(5);

/// A pool of connections to one database.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pool: Pool,
    pub(crate) options: PostgresOptions,
}

/// One connection, for as long as it is held.
pub(crate) struct Connection<'a> {
    // Only `drop` takes it out.
    client: Option<Object>,
    options: &'a PostgresOptions,
    // A statement was sent and not answered, or a transaction begun and not ended.
    unfinished: AtomicBool,
}

/// The connection settings with our timeouts added.
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
        // jit costs more than it gives on statements of a millisecond. No statement here wants a sequential scan of
        // anything large, but a plan made while a table was small would keep one. The guards are written for READ
        // COMMITTED, whatever the database's default.
        let ours = format!(
            "-c statement_timeout={} -c lock_timeout={} -c idle_in_transaction_session_timeout={} -c jit=off \
             -c enable_seqscan=off -c default_transaction_isolation=read\\ committed",
            options.statement_timeout.as_millis(),
            options.lock_timeout.as_millis(),
            options.statement_timeout.as_millis(),
        );
        let all = match config.get_options() {
            Some(theirs) => format!("{ours} {theirs}"),
            None => ours,
        };
        config.options(all);
    }
    Ok(config)
}

impl Database {
    /// A pool that opens connections when they are needed.
    pub(crate) fn new(options: PostgresOptions) -> Result<Self> {
        let manager =
            Manager::from_config(config(&options)?, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
        let wait = Some(options.statement_timeout);
        let limit = options.connect_timeout;
        let forget = Hook::async_fn(move |client, metrics| Box::pin(forget_old_plans(client, metrics, limit)));
        let mut builder = Pool::builder(manager);
        if options.prepare {
            builder = builder.pre_recycle(forget);
        }
        let pool = builder
            .max_size(options.connections.max(1))
            .timeouts(Timeouts {
                wait,
                create: Some(options.connect_timeout * 2),
                recycle: Some(options.connect_timeout),
            })
            // The connection that was used last has its plans and its part of the server's memory at hand.
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

    /// Runs one statement as a transaction of its own, again if it lost a deadlock: it was undone as a whole.
    pub(crate) async fn query(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>> {
        self.try_query(statement, params).await?.map_err(store_error)
    }

    /// The same, with the server's error for a caller that looks into it.
    pub(crate) async fn try_query(
        &self,
        statement: &Statement,
        params: Params<'_>,
    ) -> Result<Result<Vec<Row>, tokio_postgres::Error>> {
        let connection = self.connection().await?;
        for _ in 0..CONFLICT_RETRIES {
            match connection.try_query(statement, params).await? {
                Err(error) if is_conflict(&error) => {
                    tracing::debug!(
                        statement = statement.name,
                        error = describe(&error),
                        "sent again after a conflict"
                    );
                }
                answer => return Ok(answer),
            }
        }
        connection.try_query(statement, params).await
    }

    /// Closes every connection once it is given back.
    pub(crate) fn close(&self) {
        self.pool.close();
    }
}

// Runs before a connection is used again, and does something the first time in every span of PLAN_LIFE.
async fn forget_old_plans(client: &ClientWrapper, metrics: &Metrics, limit: Duration) -> Result<(), HookError> {
    let span = |at: Instant| at.duration_since(metrics.created).as_millis() / PLAN_LIFE.as_millis();
    if span(metrics.recycled.unwrap_or(metrics.created)) == span(Instant::now()) {
        return Ok(());
    }
    match tokio::time::timeout(limit, client.batch_execute("DISCARD PLANS")).await {
        Ok(answer) => answer.map_err(HookError::Backend),
        Err(_) => Err(HookError::message("no answer")),
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

    /// The same, with the server's error for a caller that looks into it.
    pub(crate) async fn try_execute(&self, sql: &str) -> Result<Result<(), tokio_postgres::Error>> {
        self.within(self.options.statement_timeout, sql, self.client().batch_execute(sql)).await
    }

    /// The same for work that may take longer than a statement, such as a migration.
    pub(crate) async fn execute_within(&self, limit: Duration, sql: &str) -> Result<()> {
        self.within(limit, sql, self.client().batch_execute(sql)).await?.map_err(store_error)
    }

    /// Reads by text without parameters, leaving nothing prepared behind.
    pub(crate) async fn fetch(&self, sql: &str) -> Result<Vec<Row>> {
        self.within(self.options.statement_timeout, sql, self.client().query_typed(sql, &[]))
            .await?
            .map_err(store_error)
    }

    // The server has its own limit; this one is for a server that does not answer at all. Until there is an answer the
    // connection counts as unfinished: whoever gives up on it, by this limit or by being dropped, closes it.
    async fn within<T>(&self, limit: Duration, what: &str, work: impl Future<Output = T>) -> Result<T> {
        let limit = limit + Duration::from_secs(5);
        let before = self.unfinished.swap(true, Ordering::Relaxed);
        let Ok(answer) = tokio::time::timeout(limit, work).await else {
            let cancel = self.client().cancel_token();
            // Nobody waits for this: it only frees the server sooner, and the connection is never used again.
            tokio::spawn(async move { tokio::time::timeout(Duration::from_secs(5), cancel.cancel_query(NoTls)).await });
            return Err(StoreError::Unavailable(format!("no answer within {limit:?}: {what}")));
        };
        self.unfinished.store(before, Ordering::Relaxed);
        Ok(answer)
    }

    /// Runs `work`, which uses this connection, in a transaction: committed if it is `Ok`, undone otherwise.
    pub(crate) async fn transaction<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.begin("").await?;
        let answer = work.await;
        self.end(answer.is_ok()).await?;
        answer
    }

    /// The same for work that may come to nothing: committed if it came to something, undone otherwise.
    pub(crate) async fn attempt<T>(&self, work: impl Future<Output = Result<Option<T>>>) -> Result<Option<T>> {
        self.begin("").await?;
        let answer = work.await;
        self.end(matches!(answer, Ok(Some(_)))).await?;
        answer
    }

    async fn end(&self, keep: bool) -> Result<()> {
        self.execute(if keep { "COMMIT" } else { "ROLLBACK" }).await?;
        self.unfinished.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Begins a transaction that lasts until [`commit`](Connection::commit), with settings of its own. A connection that is
    /// dropped before that is closed.
    pub(crate) async fn begin(&self, settings: &str) -> Result<()> {
        self.execute(&format!("BEGIN ISOLATION LEVEL READ COMMITTED; {settings}")).await?;
        self.unfinished.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Commits what was [begun](Connection::begin).
    pub(crate) async fn commit(&self) -> Result<()> {
        self.end(true).await
    }

    /// Undoes it.
    pub(crate) async fn rollback(&self) -> Result<()> {
        self.end(false).await
    }

    fn client(&self) -> &Object {
        self.client.as_ref().expect("only drop takes the client")
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        // A caller that went away half way: the connection is closed, so the server undoes what was begun, and the pool
        // opens another.
        if let Some(client) = self.client.take()
            && self.unfinished.load(Ordering::Relaxed)
        {
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) if !client.is_closed() => drop(runtime.spawn(give_up(client))),
                _ => drop(Object::take(client)),
            }
        }
    }
}

// Keeps the connection's place in the pool until the server has stopped. Closed at once, a session would go on with its
// statement, or go on waiting for a lock, beside the one that the pool opens in its place: callers that come and go while
// the database is slow would be given more sessions than it has.
async fn give_up(client: Object) {
    let stopped = async {
        // Whether it is heard or not: what follows is answered once nothing is under way any more.
        let _ = client.cancel_token().cancel_query(NoTls).await;
        let _ = client.batch_execute("").await;
    };
    let _ = tokio::time::timeout(STOPPING, stopped).await;
    drop(Object::take(client));
}
