//! The maps, and the one way to change a job.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
};

use orchestrix_core::{
    Event, Fingerprint, IdempotencyKey, JobId, JobIds, JobState, JobType, LeaseToken, Queue, Tenant, Timestamp,
};

use super::{
    audit::Audit, coordination::Coordination, index::Indexes, key::Keys, log::Logs, operation::Operations,
    recent::Revived, row::Row, schedule::Schedules, worker::Workers,
};
use crate::{Result, StoreError, metrics::Tally};

/// Everything the store holds.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Rising, so that jobs alike in all else are claimed in the order they were given.
    pub(super) ids: JobIds,
    rows: BTreeMap<JobId, Row>,
    pub(super) index: Indexes,
    /// Who waits for whom, from parent to child; taken out when the parent finishes.
    pub(super) children: HashMap<JobId, Vec<JobId>>,
    pub(super) keys: HashMap<Key, Keyed>,
    /// Where pruned jobs stood that a key still stands for.
    pub(super) gone: HashMap<JobId, JobState>,
    pub(super) paused: BTreeSet<Queue>,
    pub(super) logs: Logs,
    pub(super) workers: Workers,
    pub(super) coordination: Coordination,
    pub(super) schedules: Schedules,
    pub(super) operations: Operations,
    pub(super) revived: Revived,
    pub(super) api_keys: Keys,
    pub(super) audit: Audit,
    /// Queues in which a job became claimable since the lock was taken.
    pub(super) woken: BTreeSet<Queue>,
    /// Whether a job or a schedule began to wait for a time since then.
    pub(super) timed: bool,
    /// What is to be counted of what was done since then.
    pub(super) tally: Tally,
}

/// What an idempotency key is unique within.
pub(super) type Key = (Tenant, JobType, IdempotencyKey);

/// What a key stands for, for ever.
#[derive(Debug)]
pub(super) struct Keyed {
    pub(super) id: JobId,
    pub(super) fingerprint: Fingerprint,
}

impl Tables {
    /// The row of a job, if there is one.
    pub(super) fn find(&self, id: JobId) -> Option<&Row> {
        self.rows.get(&id)
    }

    /// The rows from this id on, the newest first.
    pub(super) fn from(&self, id: JobId) -> impl Iterator<Item = &Row> {
        self.rows.range(id..).rev().map(|(_, row)| row)
    }

    /// The rows behind this id, in the order of their ids.
    pub(super) fn behind(&self, id: JobId) -> impl Iterator<Item = &Row> {
        self.rows.range((Bound::Excluded(id), Bound::Unbounded)).map(|(_, row)| row)
    }

    /// The row of a job that should exist.
    pub(super) fn row(&self, id: JobId) -> Result<&Row> {
        self.find(id).ok_or(StoreError::JobNotFound(id))
    }

    /// The row that `token` owns now.
    pub(super) fn owned(&self, token: &LeaseToken) -> Result<&Row> {
        self.find(token.job).filter(|row| row.is_owned_by(token)).ok_or(StoreError::LeaseLost)
    }

    /// Adds a job.
    pub(super) fn insert(&mut self, row: Row) {
        self.index.add(&row);
        if row.job.state == JobState::Pending {
            self.woken.insert(row.job.queue.clone());
        }
        self.timed |= row.job.state.next(Event::Promote).is_ok();
        self.tally.enqueued(&row.job.queue, &row.job.job_type);
        self.rows.insert(row.job.id, row);
    }

    /// Changes a job and keeps the indexes true. Whoever becomes claimable wakes its queue.
    pub(super) fn update<R>(&mut self, id: JobId, change: impl FnOnce(&mut Row) -> R) -> Result<R> {
        let row = self.rows.get_mut(&id).ok_or(StoreError::JobNotFound(id))?;
        let before = row.job.state;
        self.index.remove(row);
        let answer = change(row);
        self.index.add(row);
        if row.job.state == JobState::Pending && before != JobState::Pending {
            self.woken.insert(row.job.queue.clone());
        }
        self.timed |= row.job.state != before && row.job.state.next(Event::Promote).is_ok();
        if row.job.state != before {
            self.tally.finished(&row.job.queue, &row.job.job_type, row.job.state, 1);
        }
        Ok(answer)
    }

    /// Gives up a job that nobody has started. Those that wait for it are to be [settled](Tables::settle) by the caller.
    pub(super) fn give_up(&mut self, id: JobId, event: Event, reason: &str, now: Timestamp) -> Result<JobState> {
        let decided = self.row(id)?.lifecycle().apply(event)?;
        self.update(id, |row| {
            row.decide(decided, now);
            row.job.finished_at = Some(now);
            row.job.reason = Some(reason.into());
            decided.state
        })
    }

    /// Forgets a job and its log. Its key stays.
    pub(super) fn forget(&mut self, id: JobId) {
        let Some(row) = self.rows.remove(&id) else { return };
        self.index.remove(&row);
        self.logs.forget(id);
        if row.job.idempotency_key.is_some() {
            self.gone.insert(id, row.job.state);
        }
    }
}
