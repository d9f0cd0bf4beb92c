//! What becomes of a job at somebody's request before it is done: cancelled, or let go.

use orchestrix_core::{Event, JobId, JobState, Readiness, Timestamp};

use crate::tables::Tables;
use orchestrix_store::Result;

impl Tables {
    pub(crate) fn cancel(&mut self, id: JobId, now: Timestamp) -> Result<JobState> {
        let before = self.row(id)?.lifecycle();
        let decided = before.apply(Event::Cancel)?;
        if before.state == decided.state {
            // Owned by a worker, which is asked to stop, or cancelled already.
            self.update(id, |row| row.decide(decided, now))?;
        } else {
            self.give_up(id, Event::Cancel, "requested", now)?;
            self.settle(vec![id], now)?;
        }
        Ok(decided.state)
    }

    pub(crate) fn release_hold(&mut self, id: JobId, now: Timestamp) -> Result<JobState> {
        let row = self.row(id)?;
        // What a job would have to wait for is a question only for one that is held.
        row.lifecycle().apply(Event::Release(Readiness::Ready))?;
        let readiness = Readiness::of(row.unmet > 0, row.job.eligible_at > now);
        let decided = row.lifecycle().apply(Event::Release(readiness))?;
        self.update(id, |row| {
            row.decide(decided, now);
            row.wait_from(now);
            decided.state
        })
    }
}
