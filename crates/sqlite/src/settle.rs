//! Writes decided transitions: the end of an attempt, the cancellation of an unleased job, and what the end of a job
//! does to its dependents.

use orchestrix_core::{
    AttemptOutcome, AttemptRecord, Event, JobId, JobState, Lifecycle, OnDependencyFailure, Readiness, Timestamp,
};
use orchestrix_store::{EndedAttempt, clock::later};
use rusqlite::params;

use crate::{
    columns::{Columns, columns},
    error::Result,
    row::{JobRow, micros, options},
    session::Transaction,
    statement::{
        DELETE_ATTEMPTS, FORGET_SETTLED, MARK_DEPENDENCY_MET, NEXT_SETTLED, OPEN_EDGES, RECORD_ATTEMPT, RECORD_SETTLED,
        SETTLE, UNBLOCK,
    },
};

/// The maximum number of dependents that the operation which finished their parents resolves. The `unblock_jobs` sweep
/// resolves the rest.
const MAX_DEPENDENTS_AT_ONCE: usize = 10_000;

columns! {
    mod settled of NEXT_SETTLED { id, failed }
}

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
        self.state_changed(&job.queue, Some(job.lifecycle.state), state);
        self.effects.commit.jobs_finished(&job.queue, &job.job_type, state, 1);
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
            self.write(DELETE_ATTEMPTS, params![job.id.as_uuid(), job.counter - kept])?;
        }
        Ok(())
    }

    /// Resolves the dependents of the jobs that this operation finished, and theirs in turn where they are cancelled.
    pub(crate) fn resolve_pending_dependents(&mut self) -> Result<()> {
        if self.dependents_pending {
            self.resolve_dependents(MAX_DEPENDENTS_AT_ONCE)?;
        }
        Ok(())
    }

    /// Resolves up to `limit` dependents of finished jobs. Returns how many.
    pub(crate) fn resolve_dependents(&mut self, limit: usize) -> Result<usize> {
        let mut resolved = 0;
        while resolved < limit {
            let next = self.first(NEXT_SETTLED, (), |row| {
                let row = Columns(row);
                Ok((row.id(settled::id)?, row.get::<bool>(settled::failed)?))
            })?;
            let Some((parent, failed)) = next else { break };
            let left = limit - resolved;
            let children = self.all(OPEN_EDGES, params![parent.as_uuid(), left], |row| Columns(row).id(0))?;
            for child in &children {
                self.resolve_dependent(*child, failed)?;
                self.write_one(MARK_DEPENDENCY_MET, params![child.as_uuid(), parent.as_uuid()])?;
            }
            resolved += children.len();
            if children.len() < left {
                self.write_one(FORGET_SETTLED, [parent.as_uuid()])?;
            }
        }
        Ok(resolved)
    }

    fn resolve_dependent(&mut self, id: JobId, parent_failed: bool) -> Result<()> {
        // A job that was cancelled or redriven meanwhile no longer waits.
        let waits = |job: &JobRow| matches!(job.lifecycle.state, JobState::Created | JobState::Blocked);
        let Some(job) = JobRow::find(self, id)?.filter(waits) else { return Ok(()) };
        let before = job.lifecycle.state;
        let blocked = before == JobState::Blocked;
        let event = match options(job.options.as_deref())?.on_dependency_failure {
            OnDependencyFailure::Cancel if parent_failed => {
                self.cancel_unleased(&job, "dependency_failed")?;
                return Ok(());
            }
            OnDependencyFailure::Hold if parent_failed && blocked => Some(Event::Hold),
            _ if blocked && job.waits_for == 1 => {
                Some(Event::Unblock(Readiness::of(false, job.eligible_at > self.now)))
            }
            _ => None,
        };
        let state = event.map_or(Ok(before), |event| job.lifecycle.apply(event).map(|after| after.state))?;
        // A job that waited for its parents became eligible only when they had finished.
        let eligible_at = if state == JobState::Pending { job.eligible_at.max(self.now) } else { job.eligible_at };
        let updated_at = (state != before).then_some(micros(self.now));
        self.write_one(
            UNBLOCK,
            params![id.as_uuid(), state.as_str(), job.waits_for.saturating_sub(1), micros(eligible_at), updated_at],
        )?;
        self.state_changed(&job.queue, Some(before), state);
        Ok(())
    }
}
