//! Bounded sweeps: what time does to jobs, the longest due first.

use std::time::Duration;

use orchestrix_core::{AttemptOutcome, Event, JobId};
use orchestrix_store::{EndedAttempt, SweepResult, clock::until};
use rusqlite::params;

use crate::{
    error::Result,
    row::{Columns, Found, micros},
    session::Transaction,
    statement::{
        DUE, EXPIRED, NEXT_DUE, NEXT_EXPIRY, NEXT_LEASE, NEXT_SETTLED, NEXT_TIMEOUT, OVERDUE_ATTEMPTS, OVERDUE_LEASES,
        PROMOTE, Statement,
    },
};

impl Transaction<'_> {
    pub(crate) fn promote(&mut self, limit: usize) -> Result<SweepResult> {
        self.sweep(DUE, NEXT_DUE, limit, |transaction, job| {
            let decided = job.lifecycle.apply(Event::Promote)?;
            let now = micros(transaction.now);
            transaction.write_one(PROMOTE, params![job.id.as_uuid(), now])?;
            transaction.moved(&job.queue, Some(job.lifecycle.state), decided.state);
            Ok(())
        })
    }

    pub(crate) fn expire(&mut self, limit: usize) -> Result<SweepResult> {
        self.sweep(EXPIRED, NEXT_EXPIRY, limit, |transaction, job| {
            job.lifecycle.apply(Event::Expire)?;
            transaction.give_up(job, "expired").map(drop)
        })
    }

    pub(crate) fn reap(&mut self, limit: usize, crash_loop: u16) -> Result<SweepResult> {
        let end = EndedAttempt::lost(crash_loop);
        self.sweep(OVERDUE_LEASES, NEXT_LEASE, limit, |transaction, job| transaction.end_attempt(job, &end).map(drop))
    }

    pub(crate) fn time_out(&mut self, limit: usize) -> Result<SweepResult> {
        let end = EndedAttempt::plain(AttemptOutcome::TimedOut);
        self.sweep(OVERDUE_ATTEMPTS, NEXT_TIMEOUT, limit, |transaction, job| {
            transaction.end_attempt(job, &end).map(drop)
        })
    }

    // Whoever waits for them is told only after all of the step have ended, so that what expired together says so,
    // whoever waits for whom.
    fn sweep(
        &mut self,
        due: Statement,
        next: Statement,
        limit: usize,
        mut end: impl FnMut(&mut Self, &Found) -> Result<()>,
    ) -> Result<SweepResult> {
        let ids: Vec<JobId> = self.all(due, params![micros(self.now), limit], |row| Columns(row).id(0))?;
        for id in &ids {
            let job = Found::expect(self, *id)?;
            end(self, &job)?;
        }
        self.tell_now()?;
        let next = self.first(next, (), |row| Columns(row).time(0))?;
        Ok(SweepResult { count: ids.len(), next_in: next.map(|time| until(self.now, time)) })
    }

    /// Tells children whose parents had more of them than one operation may tell.
    pub(crate) fn unblock(&mut self, limit: usize) -> Result<SweepResult> {
        let count = self.tell(limit)?;
        let more = self.first(NEXT_SETTLED, (), |_| Ok(()))?;
        Ok(SweepResult { count, next_in: more.map(|()| Duration::ZERO) })
    }
}
