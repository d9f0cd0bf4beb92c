//! Writes decided transitions: the end of an attempt and the cancellation of an unleased job.

use orchestrix_core::{AttemptOutcome, AttemptRecord, Event, JobState, Lifecycle, Timestamp};
use orchestrix_store::{EndedAttempt, clock::later};
use rusqlite::params;

use crate::{
    error::Result,
    row::{JobRow, micros},
    session::Transaction,
    statement::{DELETE_ATTEMPTS, INSERT_ATTEMPT, RECORD_SETTLED, SETTLE_JOB},
};

impl Transaction<'_> {
    /// Ends the running attempt of a leased job.
    ///
    /// The caller must call [`resolve_pending_dependents`](Transaction::resolve_pending_dependents) afterwards.
    pub(crate) fn end_attempt(&mut self, job: &JobRow, end: &EndedAttempt) -> Result<JobState> {
        // Most attempts succeed, and a success does not need the retry policy, which costs a parse.
        let retry = if end.outcome == AttemptOutcome::Completed { Default::default() } else { job.retry_policy()? };
        let transition = end.decide(job.lifecycle, &retry)?;
        self.record_attempt(job, end, transition.lifecycle.state)?;
        let result = end.result.as_ref().map(|json| json.as_str());
        self.settle(job, &transition.lifecycle, later(self.now, transition.wait), transition.reason, result)?;
        Ok(transition.lifecycle.state)
    }

    /// Cancels a job that is not leased.
    ///
    /// The caller must call [`resolve_pending_dependents`](Transaction::resolve_pending_dependents) afterwards.
    pub(crate) fn cancel_unleased(&mut self, job: &JobRow, reason: &str) -> Result<JobState> {
        let cancelled = job.lifecycle.apply(Event::Cancel)?;
        self.settle(job, &cancelled, job.eligible_at, Some(reason), None)?;
        Ok(cancelled.state)
    }

    fn settle(
        &mut self,
        job: &JobRow,
        after: &Lifecycle,
        eligible_at: Timestamp,
        reason: Option<&str>,
        result: Option<&str>,
    ) -> Result<()> {
        let Lifecycle { state, attempts, losses, .. } = *after;
        let ends = state.is_terminal();
        let now = micros(self.now);
        self.write_one(
            SETTLE_JOB,
            params![
                job.id.as_uuid(),
                job.counter,
                job.secret,
                job.lifecycle.state.as_str(),
                state.as_str(),
                now,
                micros(if ends { job.eligible_at } else { eligible_at }),
                attempts,
                losses,
                ends.then_some(now),
                reason,
                result,
            ],
        )?;
        self.state_changed(&job.lane, job.claim_key(eligible_at), Some(job.lifecycle.state), state);
        self.effects.commit.jobs_finished(&job.lane.queue, &job.lane.job_type, state, 1);
        if ends && job.has_dependents {
            self.write_one(RECORD_SETTLED, params![job.id.as_uuid(), state != JobState::Completed])?;
            self.dependents_pending = true;
        }
        Ok(())
    }

    // A job that completes at its first attempt, as most do, has no attempt record. Every other attempt has one.
    fn record_attempt(&mut self, job: &JobRow, end: &EndedAttempt, goes_to: JobState) -> Result<()> {
        if end.outcome == AttemptOutcome::Completed && job.counter == 1 {
            return Ok(());
        }
        self.write_one(
            INSERT_ATTEMPT,
            params![
                job.id.as_uuid(),
                job.counter,
                job.secret,
                job.lifecycle.attempts + 1,
                end.outcome.as_str(),
                goes_to.as_str(),
                job.worker,
                job.started_at,
                micros(self.now),
                end.error,
            ],
        )?;
        let kept = i32::try_from(AttemptRecord::KEPT).unwrap_or(i32::MAX);
        if job.counter > kept {
            self.write(DELETE_ATTEMPTS, params![job.id.as_uuid(), job.counter - kept])?;
        }
        Ok(())
    }
}
