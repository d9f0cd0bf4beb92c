//! The leader's sweeps over jobs: each handles a bounded number of due jobs, longest due first.

use orchestrix_core::{AttemptOutcome, Event, JobId};
use orchestrix_store::{EndedAttempt, SweepResult, clock::until};
use rusqlite::params;

use crate::{
    columns::Columns,
    error::Result,
    row::{JobRow, micros},
    session::Transaction,
    statement::{
        DUE_JOBS, EXPIRED_JOBS, EXPIRED_LEASES, NEXT_EXPIRY, NEXT_LEASE_EXPIRY, NEXT_PROMOTION, NEXT_TIMEOUT,
        OVERDUE_ATTEMPTS, PROMOTE_JOB, Statement,
    },
};

impl Transaction<'_> {
    pub(crate) fn promote_jobs(&mut self, limit: usize) -> Result<SweepResult> {
        self.sweep(DUE_JOBS, NEXT_PROMOTION, limit, |transaction, job| {
            let promoted = job.lifecycle.apply(Event::Promote)?;
            let now = micros(transaction.now);
            transaction.write_one(PROMOTE_JOB, params![job.id.as_uuid(), now])?;
            let key = job.claim_key(job.eligible_at);
            transaction.state_changed(&job.lane, key, Some(job.lifecycle.state), promoted.state);
            Ok(())
        })
    }

    pub(crate) fn expire_jobs(&mut self, limit: usize) -> Result<SweepResult> {
        self.sweep(EXPIRED_JOBS, NEXT_EXPIRY, limit, |transaction, job| {
            job.lifecycle.apply(Event::Expire)?;
            transaction.cancel_unleased(job, "expired").map(drop)
        })
    }

    pub(crate) fn reap_leases(&mut self, limit: usize, crash_loop: u16) -> Result<SweepResult> {
        let end = EndedAttempt::lost(crash_loop);
        self.sweep(EXPIRED_LEASES, NEXT_LEASE_EXPIRY, limit, |transaction, job| {
            transaction.end_attempt(job, &end).map(drop)
        })
    }

    pub(crate) fn time_out_attempts(&mut self, limit: usize) -> Result<SweepResult> {
        let end = EndedAttempt::plain(AttemptOutcome::TimedOut);
        self.sweep(OVERDUE_ATTEMPTS, NEXT_TIMEOUT, limit, |transaction, job| {
            transaction.end_attempt(job, &end).map(drop)
        })
    }

    // Dependents are resolved after the whole sweep. When a parent and its child expire together, both are cancelled
    // with the reason `expired`, in whichever order the sweep meets them.
    fn sweep(
        &mut self,
        due: Statement,
        next: Statement,
        limit: usize,
        mut handle: impl FnMut(&mut Self, &JobRow) -> Result<()>,
    ) -> Result<SweepResult> {
        let ids: Vec<JobId> = self.all(due, params![micros(self.now), limit], |row| Columns(row).id(0))?;
        for id in &ids {
            let job = JobRow::require(self, *id)?;
            handle(self, &job)?;
        }
        self.resolve_pending_dependents()?;
        let next = self.first(next, (), |row| Columns(row).time(0))?;
        Ok(SweepResult { count: ids.len(), next_in: next.map(|time| until(self.now, time)) })
    }
}
