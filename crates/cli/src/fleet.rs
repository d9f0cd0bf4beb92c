//! The workers of a store, and what none of them takes.

use std::time::Duration;

use anyhow::Result;
use orchestrix_core::{JobType, Queue, Timestamp};
use orchestrix_store::{Directive, PageRequest, Store, WorkerStatus};

use crate::times;

/// How long a worker may be silent and still count as living: three of its heartbeats.
const LIVE_WITHIN: Duration = Duration::from_secs(30);

/// All workers at one moment.
pub(crate) struct Fleet {
    pub(crate) workers: Vec<WorkerStatus>,
    pub(crate) now: Timestamp,
}

impl Fleet {
    /// Asks the store.
    pub(crate) async fn read(store: &dyn Store) -> Result<Self> {
        let mut workers = Vec::new();
        let mut page = PageRequest::first(PageRequest::<()>::MAX_LIMIT);
        loop {
            let found = store.workers(&page).await?;
            workers.extend(found.items);
            match found.next {
                Some(cursor) => page.cursor = Some(cursor),
                None => return Ok(Self { workers, now: Timestamp::now() }),
            }
        }
    }

    /// Whether a worker was heard of lately.
    pub(crate) fn is_live(&self, worker: &WorkerStatus) -> bool {
        times::since(worker.last_seen_at, self.now) <= LIVE_WITHIN
    }

    /// Whether a living worker takes new jobs of this kind.
    pub(crate) fn takes(&self, queue: &Queue, job_type: &JobType) -> bool {
        self.workers.iter().any(|worker| {
            self.is_live(worker)
                && worker.directive == Directive::Run
                && worker.info.queues.contains(queue)
                && worker.info.job_types.as_ref().is_none_or(|types| types.contains(job_type))
        })
    }
}

/// Says that jobs of this kind wait in vain.
pub(crate) fn nobody_takes(queue: &Queue, job_type: &JobType) -> String {
    format!("no live worker takes {job_type} from {queue}")
}
