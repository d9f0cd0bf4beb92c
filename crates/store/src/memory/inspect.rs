//! What readers see.

use std::collections::BTreeSet;

use orchestrix_core::{Job, JobId, JobType, Queue, Timestamp};

use super::{row::Row, tables::Tables};
use crate::{
    JobFilter, JobSummary, Page, PageRequest, QueueDepth, Result,
    clock::until,
    housekeeping::check_limit,
    inspect::{MAX_LANES, MAX_SCAN},
};

impl Tables {
    pub(super) fn get(&self, id: JobId) -> Option<Job> {
        self.find(id).map(Row::read)
    }

    pub(super) fn summaries(&self, ids: &[JobId]) -> Vec<JobSummary> {
        ids.iter().filter_map(|id| self.find(*id)).map(Row::summary).collect()
    }

    pub(super) fn list(&self, filter: &JobFilter, page: &PageRequest<JobId>) -> Result<Page<JobSummary, JobId>> {
        page.validate()?;
        let mut ids = self.index.newest(&filter.states, page.cursor);
        let mut items = Vec::new();
        let mut last = None;
        for id in ids.by_ref().take(MAX_SCAN) {
            last = Some(id);
            items.extend(self.find(id).map(Row::summary).filter(|job| filter.matches(job)));
            if items.len() == page.limit {
                break;
            }
        }
        Ok(Page { items, next: ids.next().and(last) })
    }

    pub(super) fn depths(&self, now: Timestamp) -> Vec<QueueDepth> {
        let names: BTreeSet<&Queue> = self.index.queues.keys().chain(&self.paused).collect();
        let depth = |queue: &Queue| {
            let index = self.index.queues.get(queue);
            let oldest = index.and_then(|index| index.waiting.first()).map(|(eligible_at, _)| until(*eligible_at, now));
            QueueDepth {
                queue: queue.clone(),
                paused: self.paused.contains(queue),
                counts: index.map(|index| index.counts.clone()).unwrap_or_default(),
                oldest,
            }
        };
        names.into_iter().map(depth).collect()
    }

    pub(super) fn lanes(&self, limit: usize) -> Result<Vec<(Queue, JobType)>> {
        check_limit(limit, MAX_LANES)?;
        let lanes =
            self.index.queues.iter().flat_map(|(queue, index)| index.lanes.keys().map(move |kind| (queue, kind)));
        Ok(lanes.take(limit).map(|(queue, job_type)| (queue.clone(), job_type.clone())).collect())
    }
}
