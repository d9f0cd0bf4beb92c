//! Who waits for which job to change. However many wait, the store is asked about all of them at once, and not at all
//! while nobody does.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use orchestrix_core::{JobId, JobStatus};
use orchestrix_store::Store;
use tokio::sync::{Notify, watch};

/// The most jobs that the store is asked about in one call.
const CALL: usize = 1_000;

/// Waits for jobs to change.
pub(crate) struct Watcher(Arc<Shared>);

struct Shared {
    /// By job: the last status that anybody saw, for all who wait for it.
    jobs: Mutex<HashMap<JobId, watch::Sender<JobStatus>>>,
    /// Told when somebody begins to wait.
    somebody: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, watch::Sender<JobStatus>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who waits for a job.
pub(crate) struct Watch(watch::Receiver<JobStatus>);

impl Watch {
    /// Waits until the job may have changed; whoever waits looks for himself.
    pub(crate) async fn stirred(&mut self) {
        if self.0.changed().await.is_err() {
            // The server ends, and whoever waits is told otherwise.
            std::future::pending::<()>().await;
        }
    }
}

impl Watcher {
    pub(crate) fn new(store: Arc<dyn Store>, interval: Duration) -> Self {
        let shared = Arc::new(Shared { jobs: Mutex::default(), somebody: Notify::new() });
        tokio::spawn(watch_all(store, Arc::downgrade(&shared), interval));
        Self(shared)
    }

    /// Begins to wait for a job that was seen with this status.
    pub(crate) fn watch(&self, id: JobId, seen: JobStatus) -> Watch {
        let watch = {
            let mut jobs = self.0.lock();
            let status = jobs.entry(id).or_insert_with(|| watch::Sender::new(seen));
            // Others saw it with another one, before or since. Either way they should look again, and from here on a look of the
            // watcher that shows anything else than this stirs all of them.
            if *status.borrow() != seen {
                status.send_replace(seen);
            }
            Watch(status.subscribe())
        };
        self.0.somebody.notify_one();
        watch
    }
}

async fn watch_all(store: Arc<dyn Store>, shared: Weak<Shared>, interval: Duration) {
    loop {
        let ids = {
            let Some(shared) = shared.upgrade() else { return };
            let mut jobs = shared.lock();
            jobs.retain(|_, status| status.receiver_count() > 0);
            jobs.keys().copied().collect::<Vec<_>>()
        };
        if ids.is_empty() {
            let Some(shared) = shared.upgrade() else { return };
            // A server that is gone is noticed within a second.
            let _ = tokio::time::timeout(Duration::from_secs(1), shared.somebody.notified()).await;
            continue;
        }
        for some in ids.chunks(CALL) {
            match store.job_states(some).await {
                Ok(states) => {
                    let Some(shared) = shared.upgrade() else { return };
                    let jobs = shared.lock();
                    for (id, state) in states {
                        if let Some(seen) = jobs.get(&id) {
                            seen.send_if_modified(|status| std::mem::replace(status, state.status()) != state.status());
                        }
                    }
                }
                Err(error) => tracing::debug!(%error, "jobs that somebody waits for could not be looked at"),
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
    async fn whoever_comes_later_waits_for_a_change_from_what_he_saw() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let watcher = Watcher::new(Arc::clone(&store), Duration::from_millis(200));
        let id = store.enqueue_job(NewJob::new(JobType::new("t").unwrap())).await.unwrap().id;
        let mut first = watcher.watch(id, JobStatus::Pending);
        assert!(timeout(A_WHILE, first.stirred()).await.is_err(), "nothing has changed");
        let claim = ClaimRequest::any(WorkerName::new("w").unwrap(), 1);
        let token = store.claim_jobs(&claim).await.unwrap()[0].token;
        // Before the watcher has looked: this one knows more than it does.
        let mut second = watcher.watch(id, JobStatus::Running);
        assert!(timeout(A_WHILE, first.stirred()).await.is_ok(), "it runs");
        assert!(timeout(A_WHILE, second.stirred()).await.is_err(), "it ran when this one came");
        store.finish_attempts(vec![OutcomeReport { token, outcome: Outcome::Release }]).await.unwrap();
        assert!(
            timeout(A_WHILE, second.stirred()).await.is_ok(),
            "it waits again, as the watcher had last seen before"
        );
    }
}
