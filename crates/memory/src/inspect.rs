//! Reads jobs and queues.

use std::{collections::BTreeSet, ops::Bound};

use orchestrix_core::{Job, JobId, JobType, Queue, Timestamp};

use crate::{row::Row, tables::Tables};
use orchestrix_store::{
    JobFilter, JobSummary, Page, PageRequest, QueueDepth, Result,
    clock::until,
    housekeeping::check_limit,
    inspect::{MAX_LANES, MAX_SCAN},
};

impl Tables {
    pub(crate) fn get(&self, id: JobId) -> Option<Job> {
        self.find(id).map(Row::read)
    }

    pub(crate) fn summaries(&self, ids: &[JobId]) -> Vec<JobSummary> {
        ids.iter().filter_map(|id| self.find(*id)).map(Row::summary).collect()
    }

    pub(crate) fn list(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobSummary, JobId>> {
        page.validate()?;
        let mut ids = self.index.newest(&filter.states, filter.id_range(page.cursor));
        let mut items = Vec::new();
        let mut last = None;
        for id in ids.by_ref().take(MAX_SCAN) {
            last = Some(id);
            items.extend(self.find(id).map(Row::summary).filter(|job| filter.matches(job)));
            if items.len() == page.limit {
                break;
            }
        }
        // Neither id may match the filter, so the cursor must reveal neither.
        let next = last.zip(ids.next()).map(|(last, next)| last.cursor_above(next));
        Ok(Page { items, next })
    }

    pub(crate) fn depths(&self, page: &PageRequest<Queue>, now: Timestamp) -> Result<Page<QueueDepth, Queue>> {
        page.validate()?;
        let after = page.cursor.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = (after, Bound::Unbounded);
        // One more than requested from each source shows whether there is a next page.
        let full = self.index.queues.range::<Queue, _>(range).map(|(queue, _)| queue).take(page.limit + 1);
        let paused = self.index.paused().range::<Queue, _>(range).take(page.limit + 1);
        let names: BTreeSet<&Queue> = full.chain(paused).collect();
        let items: Vec<QueueDepth> = names.iter().take(page.limit).filter_map(|queue| self.depth(queue, now)).collect();
        let more = names.len() > page.limit;
        let next = names.into_iter().nth(page.limit - 1).filter(|_| more).cloned();
        Ok(Page { items, next })
    }

    pub(crate) fn depth(&self, queue: &Queue, now: Timestamp) -> Option<QueueDepth> {
        let index = self.index.queues.get(queue);
        let paused = self.index.paused().contains(queue);
        let oldest = index.and_then(|index| index.waiting.first()).map(|(eligible_at, _)| until(*eligible_at, now));
        let counts = index.map(|index| index.counts.clone()).unwrap_or_default();
        (paused || !counts.is_empty()).then(|| QueueDepth { queue: queue.clone(), paused, counts, oldest })
    }

    pub(crate) fn lanes(&self, limit: usize) -> Result<Vec<(Queue, JobType)>> {
        check_limit(limit, MAX_LANES)?;
        let lanes =
            self.index.queues.iter().flat_map(|(queue, index)| index.lanes.keys().map(move |kind| (queue, kind)));
        Ok(lanes.take(limit).map(|(queue, job_type)| (queue.clone(), job_type.clone())).collect())
    }
}
