//! Waits for the status of single jobs to change: the long poll `GET /jobs/{jobId}?waitSeconds` and the event stream
//! of a job.
//!
//! One task polls the store for all watched jobs together, and not at all while no job is watched.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use orchestrix_core::{JobId, JobStatus};
use orchestrix_store::Store;
use tokio::sync::{Notify, watch};

/// The most jobs in one query.
const MAX_IDS_PER_QUERY: usize = 1_000;

pub(crate) struct StatusWatcher(Arc<Shared>);

struct Shared {
    /// The last known status of each watched job. The sender notifies all watches of the job.
    jobs: Mutex<HashMap<JobId, watch::Sender<JobStatus>>>,
    /// Wakes the polling task when a watch begins.
    watch_added: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, watch::Sender<JobStatus>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch of one job's status.
pub(crate) struct StatusWatch(watch::Receiver<JobStatus>);

impl StatusWatch {
    /// Waits until the status may have changed. The caller reads the job itself.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The watcher is gone because the server shuts down, which the caller learns elsewhere.
            std::future::pending::<()>().await;
        }
    }
}

impl StatusWatcher {
    pub(crate) fn new(store: Arc<dyn Store>, interval: Duration) -> Self {
        let shared = Arc::new(Shared { jobs: Mutex::default(), watch_added: Notify::new() });
        tokio::spawn(poll(store, Arc::downgrade(&shared), interval));
        Self(shared)
    }

    /// Watches a job for a change from the status that the caller has seen.
    pub(crate) fn watch(&self, id: JobId, seen: JobStatus) -> StatusWatch {
        let watch = {
            let mut jobs = self.0.lock();
            let status = jobs.entry(id).or_insert_with(|| watch::Sender::new(seen));
            // Another watch has seen another status, before or since. Either way that watch is notified, and from now
            // on any poll that shows another status than `seen` notifies all.
            if *status.borrow() != seen {
                status.send_replace(seen);
            }
            StatusWatch(status.subscribe())
        };
        self.0.watch_added.notify_one();
        watch
    }
}

async fn poll(store: Arc<dyn Store>, shared: Weak<Shared>, interval: Duration) {
    loop {
        let ids = {
            let Some(shared) = shared.upgrade() else { return };
            let mut jobs = shared.lock();
            jobs.retain(|_, status| status.receiver_count() > 0);
            jobs.keys().copied().collect::<Vec<_>>()
        };
        if ids.is_empty() {
            let Some(shared) = shared.upgrade() else { return };
            // The timeout makes the task notice within a second that the watcher was dropped.
            let _ = tokio::time::timeout(Duration::from_secs(1), shared.watch_added.notified()).await;
            continue;
        }
        for chunk in ids.chunks(MAX_IDS_PER_QUERY) {
            match store.job_states(chunk).await {
                Ok(states) => {
                    let Some(shared) = shared.upgrade() else { return };
                    let jobs = shared.lock();
                    for (id, state) in states {
                        if let Some(last) = jobs.get(&id) {
                            last.send_if_modified(|status| std::mem::replace(status, state.status()) != state.status());
                        }
                    }
                }
                Err(error) => tracing::debug!(%error, "could not poll the status of watched jobs"),
            }
        }
        tokio::time::sleep(interval).await;
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::{JobType, NewJob, WorkerName};
    use orchestrix_memory::MemoryStore;
    use orchestrix_store::{ClaimRequest, Outcome, OutcomeReport};
    use tokio::time::timeout;

    use super::*;

    const A_WHILE: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn a_later_watch_waits_for_a_change_from_the_status_that_it_saw() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let watcher = StatusWatcher::new(Arc::clone(&store), Duration::from_millis(200));
        let id = store.enqueue_job(NewJob::new(JobType::new("t").unwrap())).await.unwrap().id;
        let mut first = watcher.watch(id, JobStatus::Pending);
        assert!(timeout(A_WHILE, first.changed()).await.is_err(), "nothing has changed");
        let claim = ClaimRequest::any(WorkerName::new("w").unwrap(), 1);
        let token = store.claim_jobs(&claim).await.unwrap()[0].token;
        // The watcher has not polled since the claim, so this caller has seen a newer status than the watcher.
        let mut second = watcher.watch(id, JobStatus::Running);
        assert!(timeout(A_WHILE, first.changed()).await.is_ok(), "the job runs now");
        assert!(timeout(A_WHILE, second.changed()).await.is_err(), "the job ran already when the watch began");
        store.finish_attempts(vec![OutcomeReport { token, outcome: Outcome::Release }]).await.unwrap();
        assert!(timeout(A_WHILE, second.changed()).await.is_ok(), "the job is pending again");
    }
}
