//! What operators do: another chance, another priority, a queue stopped and let go.

use orchestrix_core::{Event, IllegalTransition, JobId, JobState, Priority, Queue, Timestamp};

use super::tables::Tables;
use crate::{JobFilter, PageRequest, Result, housekeeping::check_limit};

impl Tables {
    pub(super) fn retry(&mut self, id: JobId, now: Timestamp) -> Result<JobState> {
        let decided = self.row(id)?.lifecycle().apply(Event::Redrive)?;
        self.update(id, |row| {
            row.decide(decided, now);
            let job = &mut row.job;
            job.eligible_at = now;
            job.finished_at = None;
            job.reason = None;
            job.result = None;
            job.progress = None;
            job.expires_at = None;
            decided.state
        })
    }

    pub(super) fn retry_many(&mut self, filter: &JobFilter, limit: usize, now: Timestamp) -> Result<Vec<JobId>> {
        check_limit(limit, PageRequest::<JobId>::MAX_LIMIT)?;
        let redrivable = JobState::ALL.into_iter().filter(|state| state.next(Event::Redrive).is_ok());
        let states: Vec<JobState> =
            redrivable.filter(|state| filter.states.is_empty() || filter.states.contains(state)).collect();
        if states.is_empty() {
            return Ok(Vec::new());
        }
        // Not cut off at a number of rows looked at: to answer with none means that there are none.
        let matching = self
            .index
            .newest(&states, None)
            .filter(|id| self.find(*id).is_some_and(|row| filter.matches(&row.summary())));
        let ids: Vec<JobId> = matching.take(limit).collect();
        for id in &ids {
            self.retry(*id, now)?;
        }
        Ok(ids)
    }

    pub(super) fn reprioritize(&mut self, id: JobId, priority: Priority) -> Result<JobState> {
        let from = self.row(id)?.job.state;
        if from.is_terminal() {
            return Err(IllegalTransition { from, event: Event::Promote }.into());
        }
        self.update(id, |row| row.job.priority = priority)?;
        Ok(from)
    }

    pub(super) fn pause_queue(&mut self, queue: &Queue) {
        self.paused.insert(queue.clone());
    }

    pub(super) fn resume_queue(&mut self, queue: &Queue) {
        self.paused.remove(queue);
        self.woken.insert(queue.clone());
    }

    pub(super) fn paused_queues(&self) -> Vec<Queue> {
        self.paused.iter().cloned().collect()
    }
}
