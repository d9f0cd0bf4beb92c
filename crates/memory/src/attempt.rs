//! Writing down the end of an attempt, whoever ended it.

use orchestrix_core::{AttemptOutcome, AttemptRecord, JobId, JobState, Timestamp};

use crate::{
    row::{Ended, Row},
    tables::Tables,
};
use orchestrix_store::{EndedAttempt, Result, clock::later};

impl Tables {
    /// Ends the running attempt of a leased job. Those that wait for the job are to be
    /// [settled](Tables::settle) by the caller.
    pub(crate) fn end_attempt(&mut self, id: JobId, end: EndedAttempt, now: Timestamp) -> Result<JobState> {
        let row = self.row(id)?;
        let decided = end.decide(row.lifecycle(), &row.job.retry)?;
        let state = decided.lifecycle.state;
        self.update(id, |row| {
            row.log(&end, state, now);
            row.decide(decided.lifecycle, now);
            row.timeout_at = None;
            let job = &mut row.job;
            job.lease_expires_at = None;
            if state.is_terminal() {
                job.finished_at = Some(now);
                job.reason = decided.reason.map(Into::into);
                job.result = end.result;
            } else {
                job.eligible_at = later(now, decided.wait);
            }
            state
        })
    }
}

impl Row {
    // A job that succeeds at once, as most do, keeps no record of it.
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
        self.remember(Ended { record, secret });
    }
}
