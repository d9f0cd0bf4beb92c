//! Writes the end of an attempt.

use orchestrix_core::{AttemptOutcome, AttemptRecord, JobId, JobState, Timestamp};

use crate::{
    row::{AttemptEntry, Row},
    tables::Tables,
};
use orchestrix_store::{EndedAttempt, Result, clock::later};

impl Tables {
    /// Ends the running attempt of a leased job. The caller [settles](Tables::settle) its dependents.
    pub(crate) fn end_attempt(&mut self, id: JobId, end: EndedAttempt, now: Timestamp) -> Result<JobState> {
        let row = self.row(id)?;
        let transition = end.decide(row.lifecycle(), &row.job.retry)?;
        let state = transition.lifecycle.state;
        self.update(id, |row| {
            row.log(&end, state, now);
            row.apply(transition.lifecycle, now);
            row.timeout_at = None;
            let job = &mut row.job;
            job.lease_expires_at = None;
            if state.is_terminal() {
                job.finished_at = Some(now);
                job.reason = transition.reason.map(Into::into);
                job.result = end.result;
            } else {
                job.eligible_at = later(now, transition.wait);
            }
            state
        })
    }
}

impl Row {
    // A job that completes in its first attempt, as most do, keeps no record of it.
    fn log(&mut self, end: &EndedAttempt, led_to: JobState, now: Timestamp) {
        let (Some(secret), Some(started_at)) = (self.secret, self.job.started_at) else { return };
        if end.outcome == AttemptOutcome::Completed && self.ended.is_empty() {
            return;
        }
        let record = AttemptRecord {
            attempt: self.job.attempts + 1,
            lease: self.job.leases,
            outcome: end.outcome,
            led_to,
            worker: self.job.worker.clone(),
            started_at,
            ended_at: now,
            error: end.error.clone(),
        };
        self.add_attempt(AttemptEntry { record, secret });
    }
}
