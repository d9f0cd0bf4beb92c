//! Retries, priorities, and pausing queues.

use orchestrix_core::{Event, IllegalTransition, JobId, JobState, Priority, Queue, Timestamp};

use crate::tables::Tables;
use orchestrix_store::{BulkAction, JobFilter, Page, PageRequest, Result};

impl Tables {
    pub(crate) fn retry(&mut self, id: JobId, now: Timestamp) -> Result<JobState> {
        let next = self.row(id)?.lifecycle().apply(Event::Redrive)?;
        self.redriven.add(now, id);
        self.update(id, |row| {
            row.apply(next, now);
            let job = &mut row.job;
            job.eligible_at = now;
            job.finished_at = None;
            job.reason = None;
            job.result = None;
            job.progress = None;
            job.expires_at = None;
            next.state
        })
    }

    pub(crate) fn retry_many(
        &mut self,
        filter: &JobFilter,
        page: &PageRequest<JobId>,
        now: Timestamp,
    ) -> Result<Page<JobId, JobId>> {
        page.validate()?;
        let Some(filter) = BulkAction::Retry.narrow(filter) else { return Ok(Page::empty()) };
        let Page { items, next } = self.list(&filter, page)?;
        let items: Vec<JobId> = items.into_iter().map(|job| job.id).collect();
        for id in &items {
            self.retry(*id, now)?;
        }
        Ok(Page { items, next })
    }

    pub(crate) fn reprioritize(&mut self, id: JobId, priority: Priority) -> Result<JobState> {
        let from = self.row(id)?.job.state;
        if from.is_terminal() {
            return Err(IllegalTransition { from, event: Event::Promote }.into());
        }
        self.update(id, |row| row.job.priority = priority)?;
        Ok(from)
    }

    pub(crate) fn pause_queue(&mut self, queue: &Queue) {
        self.index.pause(queue);
    }

    pub(crate) fn resume_queue(&mut self, queue: &Queue) {
        self.index.resume(queue);
        self.effects.queue_claimable(queue.clone());
    }

    pub(crate) fn paused_queues(&self) -> Vec<Queue> {
        self.index.paused().iter().cloned().collect()
    }
}
