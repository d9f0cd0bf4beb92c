//! The maps, and the one way to change a job.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
};

use orchestrix_core::{
    Event, Fingerprint, IdempotencyKey, JobId, JobIds, JobState, JobType, LeaseToken, Tenant, Timestamp, Turns,
};

use crate::{
    audit::Audit, changes::Redriven, coordination::Coordination, index::Indexes, key::Keys, log::Logs,
    operation::Operations, row::Row, schedule::Schedules, tenant::Tenants, worker::Workers,
};
use orchestrix_store::{CommitEffects, Result, StoreError};

/// Everything the store holds.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// Increasing ids, so that otherwise equal jobs are claimed in the order in which they were given.
    pub(crate) ids: JobIds,
    rows: BTreeMap<JobId, Row>,
    pub(crate) index: Indexes,
    pub(crate) turns: Turns,
    pub(crate) tenants: Tenants,
    /// The dependents of each unfinished parent.
    pub(crate) children: HashMap<JobId, Vec<JobId>>,
    pub(crate) keys: HashMap<Key, KeyOwner>,
    /// The last states of pruned jobs that own an idempotency key.
    pub(crate) pruned_states: HashMap<JobId, JobState>,
    pub(crate) logs: Logs,
    pub(crate) workers: Workers,
    pub(crate) coordination: Coordination,
    pub(crate) schedules: Schedules,
    pub(crate) operations: Operations,
    pub(crate) redriven: Redriven,
    pub(crate) api_keys: Keys,
    pub(crate) audit: Audit,
    /// Published when the lock is released.
    pub(crate) effects: CommitEffects,
}

/// What an idempotency key is unique within.
pub(crate) type Key = (Tenant, JobType, IdempotencyKey);

/// The job that an idempotency key belongs to, for ever.
#[derive(Debug)]
pub(crate) struct KeyOwner {
    pub(crate) id: JobId,
    pub(crate) fingerprint: Fingerprint,
}

impl Tables {
    /// The row of a job, if there is one.
    pub(crate) fn find(&self, id: JobId) -> Option<&Row> {
        self.rows.get(&id)
    }

    /// The rows from this id on, newest first.
    pub(crate) fn newest_since(&self, id: JobId) -> impl Iterator<Item = &Row> {
        self.rows.range(id..).rev().map(|(_, row)| row)
    }

    /// The rows after this id, in order.
    pub(crate) fn after(&self, id: JobId) -> impl Iterator<Item = &Row> {
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

    /// Changes a job and keeps the indexes consistent. A job that becomes claimable wakes its queue.
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

    /// Ends a job that is not leased, by `event`. The caller [settles](Tables::settle) its dependents.
    pub(crate) fn end_waiting(&mut self, id: JobId, event: Event, reason: &str, now: Timestamp) -> Result<JobState> {
        let next = self.row(id)?.lifecycle().apply(event)?;
        self.update(id, |row| {
            row.apply(next, now);
            row.job.finished_at = Some(now);
            row.job.reason = Some(reason.into());
            next.state
        })
    }

    /// Deletes a job and its log. Its idempotency key stays.
    pub(crate) fn forget(&mut self, id: JobId) {
        let Some(row) = self.rows.remove(&id) else { return };
        self.index.remove(&row);
        self.logs.forget(id);
        if row.job.idempotency_key.is_some() {
            self.pruned_states.insert(id, row.job.state);
        }
    }
}
