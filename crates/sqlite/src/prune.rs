//! Forgetting what is past its retention, row by row and a bounded number at a time. Pages that fall empty are used again.

use orchestrix_core::{JobId, JobState};
use orchestrix_store::{Pruned, Retention, changes::REDRIVEN_RETENTION, clock::earlier};
use rusqlite::params;

use crate::{
    error::Result,
    row::{Columns, micros, options},
    session::Transaction,
    statement::{
        FORGET_ATTEMPTS, FORGET_AUDIT, FORGET_CHECKPOINT, FORGET_DEPENDENCIES, FORGET_JOB, FORGET_LOGS,
        FORGET_OCCURRENCES, FORGET_OPERATIONS, FORGET_PAYLOAD, FORGET_REVIVED, OLD_LOGS, PAST_RETENTION, REMEMBER_KEY,
    },
};

impl Transaction<'_> {
    pub(crate) fn prune(&mut self, retention: &Retention, limit: usize) -> Result<Pruned> {
        let kept = [
            (JobState::Completed, retention.completed),
            (JobState::Cancelled, retention.cancelled),
            (JobState::Dead, retention.dead),
        ];
        let mut left = limit;
        for (state, kept) in kept {
            let until = micros(earlier(self.now, kept));
            let past = self.all(PAST_RETENTION, params![state.as_str(), until, left], |row| Columns(row).id(0))?;
            left -= past.len();
            for id in past {
                self.forget(id)?;
            }
        }
        left -= self.forget_logs(micros(earlier(self.now, retention.logs)), left)?;
        for (statement, kept) in [
            (FORGET_OCCURRENCES, retention.occurrences),
            (FORGET_AUDIT, retention.audit),
            (FORGET_OPERATIONS, retention.operations),
            (FORGET_REVIVED, REDRIVEN_RETENTION),
        ] {
            if left > 0 {
                let until = micros(earlier(self.now, kept));
                left -= self.write(statement, params![until, left])?;
            }
        }
        // A step that was filled may have left something; one that was not has looked everywhere.
        Ok(Pruned { count: limit - left, more: left == 0 })
    }

    fn forget(&mut self, id: JobId) -> Result<()> {
        let uuid = id.as_uuid();
        let forgotten = self.first(FORGET_JOB, [uuid], |row| {
            let row = Columns(row);
            let key = options(row.text_or_null(2)?)?.idempotency_key;
            let key = key.map(|key| Ok::<_, crate::error::Fault>((row.get::<String>(0)?, row.get::<String>(1)?, key)));
            let (apart, has_parents, leases): (bool, bool, i32) = (row.get(3)?, row.get(4)?, row.get(5)?);
            Ok((key.transpose()?, apart, has_parents, leases, row.state(6)?))
        })?;
        let Some((key, apart, has_parents, leases, state)) = forgotten else { return Ok(()) };
        if let Some((tenant, job_type, key)) = key {
            self.write(REMEMBER_KEY, params![uuid, tenant, job_type, key.as_str(), state.as_str()])?;
        }
        if apart {
            self.write(FORGET_PAYLOAD, [uuid])?;
        }
        if has_parents {
            self.write(FORGET_DEPENDENCIES, [uuid])?;
        }
        if leases > 0 {
            self.write(FORGET_CHECKPOINT, [uuid])?;
            self.write(FORGET_ATTEMPTS, params![uuid, leases])?;
        }
        Ok(())
    }

    // Lines are numbered as they come, so the lowest numbers are the oldest.
    fn forget_logs(&mut self, until: i64, limit: usize) -> Result<usize> {
        if limit == 0 {
            return Ok(0);
        }
        let after: Option<i64> = self.first(OLD_LOGS, [limit], |row| Columns(row).get(0))?;
        self.write(FORGET_LOGS, params![after.map_or(i64::MAX, |seq| seq - 1), until])
    }
}
