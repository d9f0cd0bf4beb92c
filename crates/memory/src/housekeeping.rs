//! Sweeps over due jobs, in bounded steps, earliest first.

use orchestrix_core::{AttemptOutcome, Event, JobId, Timestamp};

use crate::{index::ByTime, tables::Tables};
use orchestrix_store::{
    EndedAttempt, Result, SweepResult, SweepTimes,
    clock::until,
    housekeeping::{MAX_SWEEP, check_limit},
};

impl Tables {
    pub(crate) fn promote(&mut self, limit: usize, now: Timestamp) -> Result<SweepResult> {
        let due = due(&self.index.due, limit, now)?;
        for id in &due {
            let next = self.row(*id)?.lifecycle().apply(Event::Promote)?;
            self.update(*id, |row| row.apply(next, now))?;
        }
        Ok(swept(due.len(), &self.index.due, now))
    }

    /// Does nothing: dependents are settled under the lock of the call that ends their parent.
    pub(crate) fn unblock(&mut self, limit: usize) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        Ok(SweepResult::default())
    }

    // Settles dependents after the whole step, so that a dependent that expired in the same step has the reason
    // `expired`.
    pub(crate) fn expire(&mut self, limit: usize, now: Timestamp) -> Result<SweepResult> {
        let due = due(&self.index.expiries, limit, now)?;
        for id in &due {
            self.end_waiting(*id, Event::Expire, "expired", now)?;
        }
        let count = due.len();
        self.settle(due, now)?;
        Ok(swept(count, &self.index.expiries, now))
    }

    pub(crate) fn reap(&mut self, limit: usize, crash_loop: u16, now: Timestamp) -> Result<SweepResult> {
        let due = due(&self.index.leases, limit, now)?;
        for id in &due {
            self.end_attempt(*id, EndedAttempt::lost(crash_loop), now)?;
        }
        let count = due.len();
        self.settle(due, now)?;
        Ok(swept(count, &self.index.leases, now))
    }

    pub(crate) fn time_out(&mut self, limit: usize, now: Timestamp) -> Result<SweepResult> {
        let due = due(&self.index.timeouts, limit, now)?;
        for id in &due {
            self.end_attempt(*id, EndedAttempt::plain(AttemptOutcome::TimedOut), now)?;
        }
        let count = due.len();
        self.settle(due, now)?;
        Ok(swept(count, &self.index.timeouts, now))
    }
}

impl Tables {
    /// There is nothing to unblock, and a store in memory has no uptime of its own.
    pub(crate) fn next_sweep_times(&self, now: Timestamp) -> SweepTimes {
        let next = |times: &ByTime| times.first().map(|(time, _)| until(now, *time));
        SweepTimes {
            promote: next(&self.index.due),
            expire: next(&self.index.expiries),
            reap: next(&self.index.leases),
            time_out: next(&self.index.timeouts),
            unblock: None,
            fire: self.schedules.next_in(now),
            up: None,
        }
    }
}

fn due(times: &ByTime, limit: usize, now: Timestamp) -> Result<Vec<JobId>> {
    check_limit(limit, MAX_SWEEP)?;
    Ok(times.iter().take_while(|(time, _)| *time <= now).take(limit).map(|(_, id)| *id).collect())
}

fn swept(count: usize, left: &ByTime, now: Timestamp) -> SweepResult {
    SweepResult { count, next_in: left.first().map(|(time, _)| until(now, *time)) }
}
