//! Deletes what is past its retention, a bounded number of rows per call. SQLite reuses the pages that become empty.

use orchestrix_core::{IdempotencyKey, JobId, JobState, JobType, Queue, Tenant};
use orchestrix_store::{Pruned, Retention, changes::REDRIVEN_RETENTION, clock::earlier};
use rusqlite::params;

use crate::{
    columns::{Columns, columns},
    error::Result,
    lanes::Lane,
    row::{micros, options},
    session::Transaction,
    statement::{
        DELETE_ATTEMPTS, DELETE_CHECKPOINT, DELETE_DEPENDENCIES, DELETE_JOB, DELETE_PAYLOAD, LOG_BATCH_END,
        PAST_RETENTION, PRUNE_AUDIT, PRUNE_LOGS, PRUNE_OCCURRENCES, PRUNE_OPERATIONS, PRUNE_REDRIVEN,
        REMEMBER_KEY_STATE,
    },
};

columns! {
    mod deleted of DELETE_JOB {
        queue, tenant, job_type, rank, options, payload_apart, has_parents, lease_counter, state,
    }
}

/// What remains to be done about a job after its row was deleted.
struct DeletedJob {
    lane: Lane,
    idempotency_key: Option<IdempotencyKey>,
    payload_apart: bool,
    has_parents: bool,
    leases: i32,
    state: JobState,
}

impl Transaction<'_> {
    pub(crate) fn prune_history(&mut self, retention: &Retention, limit: usize) -> Result<Pruned> {
        let jobs = [
            (JobState::Completed, retention.completed),
            (JobState::Cancelled, retention.cancelled),
            (JobState::Dead, retention.dead),
        ];
        let mut left = limit;
        for (state, retention) in jobs {
            let until = micros(earlier(self.now, retention));
            let past = self.all(PAST_RETENTION, params![state.as_str(), until, left], |row| Columns(row).id(0))?;
            left -= past.len();
            for id in past {
                self.delete_job(id)?;
            }
        }
        left -= self.prune_logs(micros(earlier(self.now, retention.logs)), left)?;
        for (statement, retention) in [
            (PRUNE_OCCURRENCES, retention.occurrences),
            (PRUNE_AUDIT, retention.audit),
            (PRUNE_OPERATIONS, retention.operations),
            (PRUNE_REDRIVEN, REDRIVEN_RETENTION),
        ] {
            if left > 0 {
                let until = micros(earlier(self.now, retention));
                left -= self.write(statement, params![until, left])?;
            }
        }
        // A call that stayed under its limit has seen every table.
        Ok(Pruned { count: limit - left, more: left == 0 })
    }

    fn delete_job(&mut self, id: JobId) -> Result<()> {
        let uuid = id.as_uuid();
        let deleted = self.first(DELETE_JOB, [uuid], |row| {
            let row = Columns(row);
            Ok(DeletedJob {
                lane: Lane {
                    queue: Queue::trusted(row.text(deleted::queue)?),
                    job_type: JobType::trusted(row.text(deleted::job_type)?),
                    tenant: Tenant::trusted(row.text(deleted::tenant)?),
                    rank: row.get(deleted::rank)?,
                },
                idempotency_key: options(row.text_or_null(deleted::options)?)?.idempotency_key,
                payload_apart: row.get(deleted::payload_apart)?,
                has_parents: row.get(deleted::has_parents)?,
                leases: row.get(deleted::lease_counter)?,
                state: row.state(deleted::state)?,
            })
        })?;
        let Some(job) = deleted else { return Ok(()) };
        if let Some(key) = &job.idempotency_key {
            let (tenant, job_type) = (job.lane.tenant.as_str(), job.lane.job_type.as_str());
            self.write(REMEMBER_KEY_STATE, params![uuid, tenant, job_type, key.as_str(), job.state.as_str()])?;
        }
        // A claim may have left the row of a lane that it emptied.
        self.effects.lanes.left(job.lane);
        if job.payload_apart {
            self.write(DELETE_PAYLOAD, [uuid])?;
        }
        if job.has_parents {
            self.write(DELETE_DEPENDENCIES, [uuid])?;
        }
        if job.leases > 0 {
            self.write(DELETE_CHECKPOINT, [uuid])?;
            self.write(DELETE_ATTEMPTS, params![uuid, job.leases])?;
        }
        Ok(())
    }

    // Lines are numbered as they arrive, so the lowest numbers are the oldest.
    fn prune_logs(&mut self, until: i64, limit: usize) -> Result<usize> {
        if limit == 0 {
            return Ok(0);
        }
        let end: Option<i64> = self.first(LOG_BATCH_END, [limit], |row| Columns(row).get(0))?;
        self.write(PRUNE_LOGS, params![end.map_or(i64::MAX, |seq| seq - 1), until])
    }
}
