//! One connection inside a transaction: a reader's snapshot ([`Session`]) or one operation of the writer
//! ([`Transaction`]).

use std::{mem, ops::Deref};

use orchestrix_core::{JobId, JobIds, JobState, Timestamp};
use rusqlite::{Connection, Params, Row};

use crate::{
    effects::Effects,
    error::{Result, corrupt},
    lanes::{ClaimKey, Lane, LaneChanges},
    options::SqliteOptions,
    select::ClaimHints,
    statement::Statement,
};

/// Runs statements inside an open transaction. All of them see the same snapshot and the same time.
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

    /// Visits row after row until `visit` returns false.
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

    /// Runs a statement that returns no rows, and returns how many it changed.
    pub(crate) fn execute(&self, statement: Statement, params: impl Params) -> Result<usize> {
        Ok(self.connection.prepare_cached(statement.sql)?.execute(params)?)
    }
}

/// One operation of the writer, inside its savepoint.
pub(crate) struct Transaction<'a> {
    session: Session<'a>,
    ids: &'a mut JobIds,
    /// Lane changes of earlier operations of the same transaction. Written with the commit, unless a claim needs them.
    earlier_lanes: &'a LaneChanges,
    pub(crate) earlier_lanes_written: bool,
    pub(crate) effects: Effects,
    pub(crate) hints: &'a mut ClaimHints,
    /// Whether this operation finished jobs whose dependents are not resolved yet.
    pub(crate) dependents_pending: bool,
}

impl<'a> Deref for Transaction<'a> {
    type Target = Session<'a>;

    fn deref(&self) -> &Session<'a> {
        &self.session
    }
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(
        session: Session<'a>,
        ids: &'a mut JobIds,
        earlier_lanes: &'a LaneChanges,
        hints: &'a mut ClaimHints,
    ) -> Self {
        Self {
            session,
            ids,
            earlier_lanes,
            earlier_lanes_written: false,
            effects: Effects::default(),
            hints,
            dependents_pending: false,
        }
    }

    /// Runs a part of the operation in a nested savepoint. If it fails, its writes and effects are undone.
    pub(crate) fn savepoint<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.connection.execute_batch("SAVEPOINT part")?;
        let before = mem::take(&mut self.effects);
        let dependents_pending = self.dependents_pending;
        let result = part(self);
        if result.is_ok() {
            self.connection.execute_batch("RELEASE part")?;
            let done = mem::replace(&mut self.effects, before);
            self.effects.merge(done);
            return result;
        }
        (self.effects, self.dependents_pending) = (before, dependents_pending);
        // Some errors, such as a full disk, roll back the whole transaction, and the savepoint is gone with it.
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK TO part; RELEASE part")?;
        }
        result
    }

    /// Writes, and returns how many rows changed.
    pub(crate) fn write(&mut self, statement: Statement, params: impl Params) -> Result<usize> {
        self.session.execute(statement, params)
    }

    /// Writes exactly one row. Any other number is an error.
    pub(crate) fn write_one(&mut self, statement: Statement, params: impl Params) -> Result<()> {
        match self.write(statement, params)? {
            1 => Ok(()),
            n => Err(corrupt(statement.sql, format!("changed {n} rows instead of one")).into()),
        }
    }

    /// A new job id, greater than every id that this writer made before.
    pub(crate) fn new_id(&mut self) -> JobId {
        self.ids.next(self.session.now, rand::random())
    }

    /// Writes the lane changes of earlier operations of the same transaction, before a claim reads lanes.
    pub(crate) fn write_earlier_lanes(&mut self) -> Result<()> {
        self.earlier_lanes_written = true;
        self.earlier_lanes.write(&self.session)
    }

    /// Records that a job moved between states, other than by a claim. `key` is its claim key in the new state. `from`
    /// is `None` for a job that was not counted before.
    pub(crate) fn state_changed(&mut self, lane: &Lane, key: ClaimKey, from: Option<JobState>, to: JobState) {
        self.effects.state_changed(&lane.queue, from, to);
        if to == JobState::Pending {
            self.effects.lanes.entered(lane.clone(), key);
        } else if from == Some(JobState::Pending) {
            self.effects.lanes.left(lane.clone());
        }
    }
}
