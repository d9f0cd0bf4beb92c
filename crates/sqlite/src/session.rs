//! One connection in the middle of a transaction: a reader's snapshot, or the writer with what its operations will have
//! done once it commits.

use std::{collections::BTreeMap, ops::Deref};

use orchestrix_core::{JobId, JobIds, JobState, Queue, Timestamp};
use orchestrix_store::CommitEffects;
use rusqlite::{Connection, Params, Row};

use crate::{
    error::{Result, corrupt},
    options::SqliteOptions,
    statement::{COUNT, FORGET_DEPTH, Statement},
};

/// Reads of one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Session<'a> {
    connection: &'a Connection,
    pub(crate) now: Timestamp,
    pub(crate) options: &'a SqliteOptions,
}

impl<'a> Session<'a> {
    pub(crate) fn new(connection: &'a Connection, now: Timestamp, options: &'a SqliteOptions) -> Self {
        Self { connection, now, options }
    }

    /// The first row, if there is one.
    pub(crate) fn first<T>(
        &self,
        statement: Statement,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut prepared = self.connection.prepare_cached(statement.sql)?;
        let mut rows = prepared.query(params)?;
        rows.next()?.map(read).transpose()
    }

    /// All rows.
    pub(crate) fn all<T>(
        &self,
        statement: Statement,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.each(statement, params, |row| {
            all.push(read(row)?);
            Ok(true)
        })?;
        Ok(all)
    }

    /// Row by row, until `visit` has seen enough.
    pub(crate) fn each(
        &self,
        statement: Statement,
        params: impl Params,
        mut visit: impl FnMut(&Row<'_>) -> Result<bool>,
    ) -> Result<()> {
        let mut prepared = self.connection.prepare_cached(statement.sql)?;
        let mut rows = prepared.query(params)?;
        while let Some(row) = rows.next()? {
            if !visit(row)? {
                break;
            }
        }
        Ok(())
    }

    fn execute(&self, statement: Statement, params: impl Params) -> Result<usize> {
        Ok(self.connection.prepare_cached(statement.sql)?.execute(params)?)
    }
}

/// What operations did besides writing their rows.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Changes of depth, to be written with the commit.
    depths: BTreeMap<(Queue, JobState), i64>,
    /// Published after the commit.
    pub(crate) commit: CommitEffects,
}

impl Effects {
    /// Takes in what a later operation did.
    pub(crate) fn add(&mut self, other: Self) {
        for (key, n) in other.depths {
            *self.depths.entry(key).or_default() += n;
        }
        self.commit.merge(other.commit);
    }

    /// Writes the changes of depth.
    pub(crate) fn write(&self, session: Session<'_>) -> Result<()> {
        for ((queue, state), n) in self.depths.iter().filter(|(_, n)| **n != 0) {
            session.execute(COUNT, (queue.as_str(), state.as_str(), n))?;
            if *n < 0 {
                session.execute(FORGET_DEPTH, (queue.as_str(), state.as_str()))?;
            }
        }
        Ok(())
    }
}

/// One operation of the writer.
pub(crate) struct Transaction<'a> {
    session: Session<'a>,
    ids: &'a mut JobIds,
    pub(crate) effects: Effects,
    /// Whether jobs ended whose dependents must be told.
    pub(crate) to_tell: bool,
}

impl<'a> Deref for Transaction<'a> {
    type Target = Session<'a>;

    fn deref(&self) -> &Session<'a> {
        &self.session
    }
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(session: Session<'a>, ids: &'a mut JobIds) -> Self {
        Self { session, ids, effects: Effects::default(), to_tell: false }
    }

    /// A part of the operation that leaves nothing behind if it fails.
    pub(crate) fn apart<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.connection.execute_batch("SAVEPOINT part")?;
        let before = std::mem::take(&mut self.effects);
        let to_tell = self.to_tell;
        let answer = part(self);
        if answer.is_ok() {
            self.connection.execute_batch("RELEASE part")?;
            let done = std::mem::replace(&mut self.effects, before);
            self.effects.add(done);
            return answer;
        }
        (self.effects, self.to_tell) = (before, to_tell);
        // Some errors, such as a full disk, undo all of the transaction: there is nothing left to go back to.
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK TO part; RELEASE part")?;
        }
        answer
    }

    /// Writes; answers how many rows it were.
    pub(crate) fn write(&mut self, statement: Statement, params: impl Params) -> Result<usize> {
        self.session.execute(statement, params)
    }

    /// Writes what must be there to be written.
    pub(crate) fn write_one(&mut self, statement: Statement, params: impl Params) -> Result<()> {
        match self.write(statement, params)? {
            1 => Ok(()),
            n => Err(corrupt(statement.sql, format!("{n} rows where there must be one")).into()),
        }
    }

    /// A fresh id, greater than every other that was made since the file was opened.
    pub(crate) fn new_id(&mut self) -> JobId {
        self.ids.next(self.session.now, rand::random())
    }

    /// Keeps the books: a job of `queue` has left one state for another. `None`: it was not there before.
    pub(crate) fn moved(&mut self, queue: &Queue, from: Option<JobState>, to: JobState) {
        if from == Some(to) {
            return;
        }
        let unfinished = |state: &JobState| !state.is_terminal();
        if let Some(from) = from.filter(unfinished) {
            *self.effects.depths.entry((queue.clone(), from)).or_default() -= 1;
        }
        if unfinished(&to) {
            *self.effects.depths.entry((queue.clone(), to)).or_default() += 1;
        }
        self.effects.commit.state_entered(queue, to);
    }
}
