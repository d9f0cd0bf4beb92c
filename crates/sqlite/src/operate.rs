//! What clients and operators do to single jobs and to queues.

use orchestrix_core::{Event, IllegalTransition, JobId, JobState, Priority, Queue, Readiness};
use rusqlite::params;

use crate::{
    error::Result,
    row::{Columns, Found, micros},
    session::{Session, Transaction},
    statement::{
        FORGET_SETTLED, PAUSE_QUEUE, PAUSED_QUEUES, RECORD_REVIVED, REPRIORITIZE, REQUEST_CANCEL, RESUME_QUEUE, RETRY,
        UNBLOCK,
    },
};

impl Transaction<'_> {
    pub(crate) fn cancel(&mut self, id: JobId) -> Result<JobState> {
        let state = self.cancel_untold(id)?;
        self.tell_now()?;
        Ok(state)
    }

    /// The same, but that those who wait for it are still to be [told](Transaction::tell_now).
    pub(crate) fn cancel_untold(&mut self, id: JobId) -> Result<JobState> {
        let job = Found::expect(self, id)?;
        let decided = job.lifecycle.apply(Event::Cancel)?;
        if job.lifecycle.state.is_leased() {
            self.write_one(REQUEST_CANCEL, [id.as_uuid()])?;
        } else if job.lifecycle.state != decided.state {
            self.give_up(&job, "requested")?;
        }
        Ok(decided.state)
    }

    pub(crate) fn release_hold(&mut self, id: JobId) -> Result<JobState> {
        let job = Found::expect(self, id)?;
        // What a job would have to wait for is a question only for one that is held.
        job.lifecycle.apply(Event::Release(Readiness::Ready))?;
        let readiness = Readiness::of(job.waits_for > 0, job.eligible_at > self.now);
        let state = job.lifecycle.apply(Event::Release(readiness))?.state;
        let eligible_at = if state == JobState::Pending { job.eligible_at.max(self.now) } else { job.eligible_at };
        let now = micros(self.now);
        self.write_one(UNBLOCK, params![id.as_uuid(), state.as_str(), job.waits_for, micros(eligible_at), now])?;
        self.moved(&job.queue, Some(job.lifecycle.state), state);
        Ok(state)
    }

    pub(crate) fn retry(&mut self, id: JobId) -> Result<JobState> {
        let job = Found::expect(self, id)?;
        let decided = job.lifecycle.apply(Event::Redrive)?;
        self.write_one(RETRY, params![id.as_uuid(), micros(self.now), decided.max_attempts])?;
        self.write(RECORD_REVIVED, params![micros(self.now), id.as_uuid()])?;
        // It has not finished after all: whoever was not told yet waits for the new end.
        self.write(FORGET_SETTLED, [id.as_uuid()])?;
        self.moved(&job.queue, None, decided.state);
        Ok(decided.state)
    }

    pub(crate) fn retry_some(&mut self, ids: &[JobId]) -> Result<Vec<JobId>> {
        let mut retried = Vec::with_capacity(ids.len());
        for id in ids {
            // Somebody may have been faster since they were looked for.
            let finished = Found::read(self, *id)?.is_some_and(|job| job.lifecycle.apply(Event::Redrive).is_ok());
            if finished {
                self.retry(*id)?;
                retried.push(*id);
            }
        }
        Ok(retried)
    }

    pub(crate) fn reprioritize(&mut self, id: JobId, priority: Priority) -> Result<JobState> {
        let from = Found::expect(self, id)?.lifecycle.state;
        if from.is_terminal() {
            return Err(IllegalTransition { from, event: Event::Promote }.into());
        }
        self.write_one(REPRIORITIZE, params![id.as_uuid(), -priority.get()])?;
        Ok(from)
    }

    pub(crate) fn pause_queue(&mut self, queue: &Queue) -> Result<()> {
        self.write_one(PAUSE_QUEUE, [queue.as_str()])
    }

    pub(crate) fn resume_queue(&mut self, queue: &Queue) -> Result<()> {
        self.write(RESUME_QUEUE, [queue.as_str()])?;
        self.effects.commit.queue_claimable(queue.clone());
        Ok(())
    }
}

pub(crate) fn paused_queues(session: &Session<'_>) -> Result<Vec<Queue>> {
    session.all(PAUSED_QUEUES, (), |row| Ok(Queue::trusted(Columns(row).text(0)?)))
}
