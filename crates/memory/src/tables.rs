//! The maps, and the one way to change a job.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
};

use orchestrix_core::{
    Event, Fingerprint, IdempotencyKey, JobId, JobIds, JobState, JobType, LeaseToken, Queue, Tenant, Timestamp,
};

use crate::{
    audit::Audit, coordination::Coordination, index::Indexes, key::Keys, log::Logs, operation::Operations,
    recent::Revived, row::Row, schedule::Schedules, worker::Workers,
};
use orchestrix_store::{CommitEffects, Result, StoreError};

/// Everything the store holds.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// Rising, so that jobs alike in all else are claimed in the order they were given.
    pub(crate) ids: JobIds,
    rows: BTreeMap<JobId, Row>,
    pub(crate) index: Indexes,
    /// Who waits for whom, from parent to child; taken out when the parent finishes.
    pub(crate) children: HashMap<JobId, Vec<JobId>>,
    pub(crate) keys: HashMap<Key, Keyed>,
    /// Where pruned jobs stood that a key still stands for.
    pub(crate) gone: HashMap<JobId, JobState>,
    pub(crate) paused: BTreeSet<Queue>,
    pub(crate) logs: Logs,
    pub(crate) workers: Workers,
    pub(crate) coordination: Coordination,
    pub(crate) schedules: Schedules,
    pub(crate) operations: Operations,
    pub(crate) revived: Revived,
    pub(crate) api_keys: Keys,
    pub(crate) audit: Audit,
    /// Published when the lock is released.
    pub(crate) effects: CommitEffects,
}

/// What an idempotency key is unique within.
pub(crate) type Key = (Tenant, JobType, IdempotencyKey);

/// What a key stands for, for ever.
#[derive(Debug)]
pub(crate) struct Keyed {
    pub(crate) id: JobId,
    pub(crate) fingerprint: Fingerprint,
}

impl Tables {
    /// The row of a job, if there is one.
    pub(crate) fn find(&self, id: JobId) -> Option<&Row> {
        self.rows.get(&id)
    }

    /// The rows from this id on, the newest first.
    pub(crate) fn from(&self, id: JobId) -> impl Iterator<Item = &Row> {
        self.rows.range(id..).rev().map(|(_, row)| row)
    }

    /// The rows behind this id, in the order of their ids.
    pub(crate) fn behind(&self, id: JobId) -> impl Iterator<Item = &Row> {
        self.rows.range((Bound::Excluded(id), Bound::Unbounded)).map(|(_, row)| row)
    }

    /// The row of a job that should exist.
    pub(crate) fn row(&self, id: JobId) -> Result<&Row> {
        self.find(id).ok_or(StoreError::JobNotFound(id))
    }

    /// The row that `token` owns now.
    pub(crate) fn owned(&self, token: &LeaseToken) -> Result<&Row> {
        self.find(token.job).filter(|row| row.is_owned_by(token)).ok_or(StoreError::LeaseLost)
    }

    /// Adds a job.
    pub(crate) fn insert(&mut self, row: Row) {
        self.index.add(&row);
        self.effects.state_entered(&row.job.queue, row.job.state);
        self.effects.job_enqueued(&row.job.queue, &row.job.job_type);
        self.rows.insert(row.job.id, row);
    }

    /// Changes a job and keeps the indexes true. Whoever becomes claimable wakes its queue.
    pub(crate) fn update<R>(&mut self, id: JobId, change: impl FnOnce(&mut Row) -> R) -> Result<R> {
        let row = self.rows.get_mut(&id).ok_or(StoreError::JobNotFound(id))?;
        let before = row.job.state;
        self.index.remove(row);
        let answer = change(row);
        self.index.add(row);
        if row.job.state != before {
            self.effects.state_entered(&row.job.queue, row.job.state);
            self.effects.jobs_finished(&row.job.queue, &row.job.job_type, row.job.state, 1);
        }
        Ok(answer)
    }

    /// Gives up a job that nobody has started. Those that wait for it are to be [settled](Tables::settle) by the caller.
    pub(crate) fn give_up(&mut self, id: JobId, event: Event, reason: &str, now: Timestamp) -> Result<JobState> {
        let decided = self.row(id)?.lifecycle().apply(event)?;
        self.update(id, |row| {
            row.decide(decided, now);
            row.job.finished_at = Some(now);
            row.job.reason = Some(reason.into());
            decided.state
        })
    }

    /// Forgets a job and its log. Its key stays.
    pub(crate) fn forget(&mut self, id: JobId) {
        let Some(row) = self.rows.remove(&id) else { return };
        self.index.remove(&row);
        self.logs.forget(id);
        if row.job.idempotency_key.is_some() {
            self.gone.insert(id, row.job.state);
        }
    }
}
