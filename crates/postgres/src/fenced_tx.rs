//! Statements of the leader, fenced by its epoch, or of any other caller.
//!
//! A leader's statements are one transaction that begins by locking the epoch: no other node can take over while it is
//! open, and after a takeover it is refused before it writes. The transaction is short, by limits that the server
//! enforces: a leader that is stopped in the middle is cut off and delays its successor for no longer than that.

use async_trait::async_trait;
use orchestrix_store::{Epoch, Fence, Result, StoreError};
use tokio_postgres::Row;

use crate::{
    database::{Connection, Database, Params},
    job_columns::millis,
    runner::{AnyRow, Param, Runner},
    statement::{LOCK_EPOCH, Statement},
};

/// Statements that belong together: one transaction for a leader, else one each unless asked for.
pub(crate) struct FencedTx<'a> {
    database: &'a Database,
    /// The connection of the open transaction. Dropped without a commit it is closed, and the server rolls back.
    connection: Option<Connection<'a>>,
}

impl Database {
    /// Begins the leader's transaction. Without a leader, every statement commits by itself.
    pub(crate) async fn fenced(&self, fence: Fence) -> Result<FencedTx<'_>> {
        let Some(patience) = fence.patience() else { return Ok(FencedTx { database: self, connection: None }) };
        let connection = self.connection().await?;
        let timeout = millis(patience).max(1);
        connection
            .begin(&format!(
                "SET LOCAL statement_timeout = {timeout}; SET LOCAL lock_timeout = {timeout}; \
                 SET LOCAL idle_in_transaction_session_timeout = {timeout}"
            ))
            .await?;
        let rows = connection.query(&LOCK_EPOCH, &[]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Backend("the table `leader` has no row".into()))?;
        fence.check(Epoch(row.get("epoch")))?;
        Ok(FencedTx { database: self, connection: Some(connection) })
    }

    /// Begins a transaction, also without a leader.
    pub(crate) async fn fenced_transaction(&self, fence: Fence) -> Result<FencedTx<'_>> {
        if fence.patience().is_some() {
            return self.fenced(fence).await;
        }
        let connection = self.connection().await?;
        connection.begin("").await?;
        Ok(FencedTx { database: self, connection: Some(connection) })
    }
}

impl FencedTx<'_> {
    /// Begins a transaction, unless the statements are in one already.
    pub(crate) async fn into_transaction(self) -> Result<Self> {
        if self.connection.is_some() { Ok(self) } else { self.database.fenced_transaction(Fence::NONE).await }
    }

    /// Runs one statement.
    pub(crate) async fn query(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>> {
        match &self.connection {
            Some(connection) => connection.query(statement, params).await,
            None => self.database.query(statement, params).await,
        }
    }

    /// Sets a savepoint.
    pub(crate) async fn set_savepoint(&self) -> Result<()> {
        self.execute("SAVEPOINT mark").await
    }

    /// Removes the latest savepoint and keeps what was done since.
    pub(crate) async fn release_savepoint(&self) -> Result<()> {
        self.execute("RELEASE SAVEPOINT mark").await
    }

    /// Undoes what was done since the latest savepoint, also after a failed statement, and removes the savepoint.
    pub(crate) async fn rollback_to_savepoint(&self) -> Result<()> {
        self.execute("ROLLBACK TO SAVEPOINT mark; RELEASE SAVEPOINT mark").await
    }

    // Without a transaction there are no savepoints.
    async fn execute(&self, sql: &str) -> Result<()> {
        match &self.connection {
            Some(connection) => connection.execute(sql).await,
            None => Ok(()),
        }
    }

    /// Commits the transaction, if there is one.
    pub(crate) async fn commit(self) -> Result<()> {
        match self.connection {
            Some(connection) => connection.commit().await,
            None => Ok(()),
        }
    }

    /// Commits after a success and rolls back after an error; returns the result.
    pub(crate) async fn finish<T>(self, result: Result<T>) -> Result<T> {
        if result.is_ok() {
            self.commit().await?;
        } else if let Some(connection) = &self.connection {
            // A failed rollback needs no handling: the connection is closed then, which rolls back too.
            let _ = connection.rollback().await;
        }
        result
    }
}

#[async_trait]
impl Runner for &FencedTx<'_> {
    async fn run(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<AnyRow>> {
        Ok(self.query(statement, &Param::all(params)).await?.into_iter().map(AnyRow::Tokio).collect())
    }
}
