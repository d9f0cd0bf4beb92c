//! Gathers the facts for `GET /admin/jobs/{jobId}/explain`.

use orchestrix_api::admin::explain::{Facts, WorkerAvailability, facts};
use orchestrix_core::{Job, Timestamp};
use orchestrix_store::{PageRequest, Result, Store};

/// The most pages of workers to read.
const MAX_PAGES: usize = 10;

/// Reads the facts that the job's state needs, and no others.
pub(super) async fn gather_facts(store: &dyn Store, job: &Job, now: Timestamp) -> Result<Facts> {
    let mut facts = Facts::none(now);
    if facts::needs_dependencies(job) {
        facts.dependencies = store.job_states(&job.depends_on).await?;
    }
    if facts::needs_workers(job) {
        facts.paused = store.paused_queues().await?.contains(&job.queue);
        facts.availability = worker_availability(store, job).await?;
    }
    if facts::needs_weight(job) {
        facts.weight = store.tenant_settings(&job.tenant).await?.weight;
    }
    if facts::needs_leader(job, now) {
        facts.leader = store.leader().await?.is_some();
    }
    Ok(facts)
}

/// Returns the best availability of any worker. `None` if there are more workers than it reads: one of the others may
/// be available.
async fn worker_availability(store: &dyn Store, job: &Job) -> Result<Option<WorkerAvailability>> {
    let mut best = WorkerAvailability::NoWorker;
    let mut page = PageRequest::first(PageRequest::<()>::MAX_LIMIT);
    for _ in 0..MAX_PAGES {
        let workers = store.list_workers(&page).await?;
        let each = workers.items.iter().map(|worker| WorkerAvailability::of(worker, &job.queue, &job.job_type));
        best = each.fold(best, Ord::max);
        match workers.next {
            Some(cursor) if best < WorkerAvailability::Available => page.cursor = Some(cursor),
            _ => return Ok(Some(best)),
        }
    }
    Ok(None)
}
