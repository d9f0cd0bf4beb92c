//! Sweeps: what the clock does to jobs, a bounded step at a time, oldest due first.

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
            let decided = self.row(*id)?.lifecycle().apply(Event::Promote)?;
            self.update(*id, |row| row.decide(decided, now))?;
        }
        Ok(swept(due.len(), &self.index.due, now))
    }

    /// Nothing to do: under one lock, every job is settled before the verb that ended its parents is over.
    pub(crate) fn unblock(&mut self, limit: usize) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        Ok(SweepResult::default())
    }

    // Settled only after all of the step have expired, so that what expired together says so, whoever waits for whom.
    pub(crate) fn expire(&mut self, limit: usize, now: Timestamp) -> Result<SweepResult> {
        let due = due(&self.index.expiries, limit, now)?;
        for id in &due {
            self.give_up(*id, Event::Expire, "expired", now)?;
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
    /// Nothing waits to be unblocked here, and a store in memory has always been up.
    pub(crate) fn agenda(&self, now: Timestamp) -> SweepTimes {
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
