//! Statements in a leader's name, or in nobody's.
//!
//! A leader's are a transaction that begins by taking hold of the epoch: while it is open nobody can take over, and whoever
//! has taken over has refused it before it wrote anything. It is short, by limits that the server keeps: a leader that is
//! stopped in the middle of it is cut off, and keeps a successor waiting for no longer than that.

use async_trait::async_trait;
use orchestrix_store::{Epoch, Fence, Result, StoreError};
use tokio_postgres::Row;

use crate::{
    database::{Connection, Database, Params},
    record::millis,
    runner::{Param, Record, Runner},
    statement::{FENCE, Statement},
};

/// Statements that belong together.
pub(crate) struct Work<'a> {
    database: &'a Database,
    /// Of a leader. Dropped without a commit it is closed, and the server undoes what was done.
    connection: Option<Connection<'a>>,
}

impl Database {
    /// Begins to work in the name of `fence`.
    pub(crate) async fn work(&self, fence: Fence) -> Result<Work<'_>> {
        let Some(patience) = fence.patience() else { return Ok(Work { database: self, connection: None }) };
        let connection = self.connection().await?;
        let patience = millis(patience).max(1);
        connection
            .begin(&format!(
                "SET LOCAL statement_timeout = {patience}; SET LOCAL lock_timeout = {patience}; \
                 SET LOCAL idle_in_transaction_session_timeout = {patience}"
            ))
            .await?;
        let rows = connection.query(&FENCE, &[]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Backend("the row of the leader is gone".into()))?;
        fence.check(Epoch(row.get(0)))?;
        Ok(Work { database: self, connection: Some(connection) })
    }

    /// The same, as one transaction even where there is no leader.
    pub(crate) async fn transaction(&self, fence: Fence) -> Result<Work<'_>> {
        if fence.patience().is_some() {
            return self.work(fence).await;
        }
        let connection = self.connection().await?;
        connection.begin("").await?;
        Ok(Work { database: self, connection: Some(connection) })
    }
}

impl Work<'_> {
    /// Runs one statement; a transaction by itself where there is no leader.
    pub(crate) async fn query(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>> {
        match &self.connection {
            Some(connection) => connection.query(statement, params).await,
            None => self.database.query(statement, params).await,
        }
    }

    /// Marks a point of a transaction to which it can be [taken back](Work::take_back).
    pub(crate) async fn mark(&self) -> Result<()> {
        self.execute("SAVEPOINT mark").await
    }

    /// Forgets the latest mark, and keeps what was done since.
    pub(crate) async fn unmark(&self) -> Result<()> {
        self.execute("RELEASE SAVEPOINT mark").await
    }

    /// Undoes what was done since the latest mark, also after a statement that failed; forgets the mark.
    pub(crate) async fn take_back(&self) -> Result<()> {
        self.execute("ROLLBACK TO SAVEPOINT mark; RELEASE SAVEPOINT mark").await
    }

    // Where there is no transaction there is nothing to mark.
    async fn execute(&self, sql: &str) -> Result<()> {
        match &self.connection {
            Some(connection) => connection.execute(sql).await,
            None => Ok(()),
        }
    }

    /// Makes it last.
    pub(crate) async fn commit(self) -> Result<()> {
        match self.connection {
            Some(connection) => connection.commit().await,
            None => Ok(()),
        }
    }

    /// Makes it last if it came to something, and undoes it otherwise.
    pub(crate) async fn conclude<T>(self, answer: Result<T>) -> Result<T> {
        if answer.is_ok() {
            self.commit().await?;
        } else if let Some(connection) = &self.connection {
            // Whatever comes of this: a connection that did not answer is closed, which undoes it too.
            let _ = connection.rollback().await;
        }
        answer
    }
}

#[async_trait]
impl Runner for &Work<'_> {
    async fn run(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Record>> {
        Ok(self.query(statement, &Param::all(params)).await?.into_iter().map(Record::Ours).collect())
    }
}
