//! Cancels jobs and releases held ones.

use orchestrix_core::{Event, JobId, JobState, Readiness, Timestamp};

use crate::tables::Tables;
use orchestrix_store::Result;

impl Tables {
    pub(crate) fn cancel(&mut self, id: JobId, now: Timestamp) -> Result<JobState> {
        let before = self.row(id)?.lifecycle();
        let next = before.apply(Event::Cancel)?;
        if before.state == next.state {
            // Leased, so the worker is asked to stop; or already cancelled.
            self.update(id, |row| row.apply(next, now))?;
        } else {
            self.end_waiting(id, Event::Cancel, "requested", now)?;
            self.settle(vec![id], now)?;
        }
        Ok(next.state)
    }

    pub(crate) fn release_hold(&mut self, id: JobId, now: Timestamp) -> Result<JobState> {
        let row = self.row(id)?;
        // Fails first if the job is not held.
        row.lifecycle().apply(Event::Release(Readiness::Ready))?;
        let readiness = Readiness::of(row.unmet > 0, row.job.eligible_at > now);
        let next = row.lifecycle().apply(Event::Release(readiness))?;
        self.update(id, |row| {
            row.apply(next, now);
            row.wait_from(now);
            next.state
        })
    }
}
