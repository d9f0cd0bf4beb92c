//! Carrying out decisions: the end of an attempt, the end of a job that nobody owns, and what the end of a job does to
//! those that wait for it.

use orchestrix_core::{
    AttemptOutcome, AttemptRecord, Event, JobId, JobState, Lifecycle, OnDependencyFailure, Readiness, Timestamp,
};
use orchestrix_store::{EndedAttempt, clock::later};
use rusqlite::params;

use crate::{
    error::Result,
    row::{Columns, Found, micros, options},
    session::Transaction,
    statement::{
        FORGET_ATTEMPTS, FORGET_SETTLED, NEXT_SETTLED, OPEN_EDGES, RECORD_ATTEMPT, SETTLE, SETTLED, TURN_EDGE, UNBLOCK,
    },
};

/// Dependents told by the operation that ended their parents; the sweep tells the rest.
const TELL_AT_ONCE: usize = 10_000;

impl Transaction<'_> {
    /// Ends the running attempt of a leased job. Whoever waits for the job is to be [told](Transaction::tell_now).
    pub(crate) fn end_attempt(&mut self, job: &Found, end: &EndedAttempt) -> Result<JobState> {
        // Most jobs succeed, and a success does not ask for the policy.
        let retry = if end.outcome == AttemptOutcome::Completed { Default::default() } else { job.retry()? };
        let decided = end.decide(job.lifecycle, &retry)?;
        self.log_attempt(job, end, decided.lifecycle.state)?;
        let result = end.result.as_ref().map(|json| json.as_str());
        self.settle(job, &decided.lifecycle, later(self.now, decided.wait), decided.reason, result)?;
        Ok(decided.lifecycle.state)
    }

    /// Cancels a job that nobody owns. Whoever waits for it is to be [told](Transaction::tell_now).
    pub(crate) fn give_up(&mut self, job: &Found, reason: &str) -> Result<JobState> {
        let decided = job.lifecycle.apply(Event::Cancel)?;
        self.settle(job, &decided, job.eligible_at, Some(reason), None)?;
        Ok(decided.state)
    }

    fn settle(
        &mut self,
        job: &Found,
        decided: &Lifecycle,
        eligible_at: Timestamp,
        reason: Option<&str>,
        result: Option<&str>,
    ) -> Result<()> {
        let Lifecycle { state, attempts, losses, .. } = *decided;
        let ends = state.is_terminal();
        let now = micros(self.now);
        self.write_one(
            SETTLE,
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
        self.moved(&job.queue, Some(job.lifecycle.state), state);
        self.effects.commit.jobs_finished(&job.queue, &job.job_type, state, 1);
        if ends && job.has_dependents {
            self.write_one(SETTLED, params![job.id.as_uuid(), state != JobState::Completed])?;
            self.to_tell = true;
        }
        Ok(())
    }

    // A job that succeeds at once, as most do, keeps no record of it. Every earlier lease left one.
    fn log_attempt(&mut self, job: &Found, end: &EndedAttempt, goes_to: JobState) -> Result<()> {
        if end.outcome == AttemptOutcome::Completed && job.counter == 1 {
            return Ok(());
        }
        self.write_one(
            RECORD_ATTEMPT,
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
            self.write(FORGET_ATTEMPTS, params![job.id.as_uuid(), job.counter - kept])?;
        }
        Ok(())
    }

    /// Tells those who wait for jobs that this operation ended, and so on along chains of cancelled ones.
    pub(crate) fn tell_now(&mut self) -> Result<()> {
        if self.to_tell {
            self.tell(TELL_AT_ONCE)?;
        }
        Ok(())
    }

    /// Tells up to `limit` children that their parents have finished; answers how many.
    pub(crate) fn tell(&mut self, limit: usize) -> Result<usize> {
        let mut told = 0;
        while told < limit {
            let next = self.first(NEXT_SETTLED, (), |row| Ok((Columns(row).id(0)?, Columns(row).get::<bool>(1)?)))?;
            let Some((parent, failed)) = next else { break };
            let left = limit - told;
            let children = self.all(OPEN_EDGES, params![parent.as_uuid(), left], |row| Columns(row).id(0))?;
            for child in &children {
                self.tell_one(*child, failed)?;
                self.write_one(TURN_EDGE, params![child.as_uuid(), parent.as_uuid()])?;
            }
            told += children.len();
            if children.len() < left {
                self.write_one(FORGET_SETTLED, [parent.as_uuid()])?;
            }
        }
        Ok(told)
    }

    fn tell_one(&mut self, id: JobId, failed: bool) -> Result<()> {
        // Whoever was cancelled meanwhile stays so, and whoever was redriven has stopped waiting.
        let waits = |job: &Found| matches!(job.lifecycle.state, JobState::Created | JobState::Blocked);
        let Some(job) = Found::read(self, id)?.filter(waits) else { return Ok(()) };
        let was = job.lifecycle.state;
        let blocked = was == JobState::Blocked;
        let event = match options(job.options.as_deref())?.on_dependency_failure {
            OnDependencyFailure::Cancel if failed => {
                self.give_up(&job, "dependency_failed")?;
                return Ok(());
            }
            OnDependencyFailure::Hold if failed && blocked => Some(Event::Hold),
            _ if blocked && job.waits_for == 1 => {
                Some(Event::Unblock(Readiness::of(false, job.eligible_at > self.now)))
            }
            _ => None,
        };
        let state = event.map_or(Ok(was), |event| job.lifecycle.apply(event).map(|decided| decided.state))?;
        // A job that had to wait for something else became eligible only when that was over.
        let eligible_at = if state == JobState::Pending { job.eligible_at.max(self.now) } else { job.eligible_at };
        let changed = (state != was).then_some(micros(self.now));
        self.write_one(
            UNBLOCK,
            params![id.as_uuid(), state.as_str(), job.waits_for.saturating_sub(1), micros(eligible_at), changed],
        )?;
        self.moved(&job.queue, Some(was), state);
        Ok(())
    }
}
