//! What clients and operators do to single jobs: cancel, release, retry, reprioritize.

use orchestrix_core::{Event, IllegalTransition, JobId, JobState, Priority, Readiness};
use rusqlite::params;

use crate::{
    error::Result,
    lanes::{ClaimKey, Lane},
    row::{JobRow, micros},
    session::Transaction,
    statement::{FORGET_SETTLED_PARENT, RECORD_REDRIVEN, REPRIORITIZE_JOB, REQUEST_CANCEL, RETRY_JOB, UNBLOCK_JOB},
};

impl Transaction<'_> {
    pub(crate) fn cancel_job(&mut self, id: JobId) -> Result<JobState> {
        let state = self.cancel_without_dependents(id)?;
        self.resolve_pending_dependents()?;
        Ok(state)
    }

    /// Cancels a job, or asks its lease owner to stop.
    ///
    /// The caller must call [`resolve_pending_dependents`](Transaction::resolve_pending_dependents) afterwards.
    pub(crate) fn cancel_without_dependents(&mut self, id: JobId) -> Result<JobState> {
        let job = JobRow::require(self, id)?;
        let after = job.lifecycle.apply(Event::Cancel)?;
        if job.lifecycle.state.is_leased() {
            self.write_one(REQUEST_CANCEL, [id.as_uuid()])?;
        } else if job.lifecycle.state != after.state {
            self.cancel_unleased(&job, "requested")?;
        }
        Ok(after.state)
    }

    pub(crate) fn release_held_job(&mut self, id: JobId) -> Result<JobState> {
        let job = JobRow::require(self, id)?;
        // Refuses a job that is not held, whatever it would wait for.
        job.lifecycle.apply(Event::Release(Readiness::Ready))?;
        let readiness = Readiness::of(job.waits_for > 0, job.eligible_at > self.now);
        let state = job.lifecycle.apply(Event::Release(readiness))?.state;
        let eligible_at = if state == JobState::Pending { job.eligible_at.max(self.now) } else { job.eligible_at };
        let now = micros(self.now);
        self.write_one(UNBLOCK_JOB, params![id.as_uuid(), state.as_str(), job.waits_for, micros(eligible_at), now])?;
        self.state_changed(&job.lane, job.claim_key(eligible_at), Some(job.lifecycle.state), state);
        Ok(state)
    }

    pub(crate) fn retry_job(&mut self, id: JobId) -> Result<JobState> {
        let job = JobRow::require(self, id)?;
        let redriven = job.lifecycle.apply(Event::Redrive)?;
        self.write_one(RETRY_JOB, params![id.as_uuid(), micros(self.now), redriven.max_attempts])?;
        self.write(RECORD_REDRIVEN, params![micros(self.now), id.as_uuid()])?;
        // The job is unfinished again. Dependents that were not resolved yet wait for its new end.
        self.write(FORGET_SETTLED_PARENT, [id.as_uuid()])?;
        self.state_changed(&job.lane, job.claim_key(self.now), None, redriven.state);
        Ok(redriven.state)
    }

    /// Redrives those of the jobs that can be redriven, and returns their ids.
    pub(crate) fn retry_jobs(&mut self, ids: &[JobId]) -> Result<Vec<JobId>> {
        let mut retried = Vec::with_capacity(ids.len());
        for id in ids {
            // Another caller may have redriven it since it was listed.
            let can_redrive = JobRow::find(self, *id)?.is_some_and(|job| job.lifecycle.apply(Event::Redrive).is_ok());
            if can_redrive {
                self.retry_job(*id)?;
                retried.push(*id);
            }
        }
        Ok(retried)
    }

    pub(crate) fn reprioritize_job(&mut self, id: JobId, priority: Priority) -> Result<JobState> {
        let job = JobRow::require(self, id)?;
        let from = job.lifecycle.state;
        if from.is_terminal() {
            return Err(IllegalTransition { from, event: Event::Promote }.into());
        }
        self.write_one(REPRIORITIZE_JOB, params![id.as_uuid(), -priority.get()])?;
        if from == JobState::Pending {
            let lane = Lane { rank: -priority.get(), ..job.lane.clone() };
            self.effects.lanes.left(job.lane);
            self.effects.lanes.entered(lane, ClaimKey::new(job.eligible_at, id));
        }
        Ok(from)
    }
}
