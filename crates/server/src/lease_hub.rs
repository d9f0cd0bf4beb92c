//! Long polls of workers for jobs.
//!
//! Long polls with the same selector (the same queues and job types) share one wait queue. A wake-up hint wakes the
//! first poll of each matching queue. A poll that gets jobs wakes the next one, and a poll that gets none leaves the
//! queue asleep. So a hint costs one fruitless claim per wait queue at most, however many workers wait. Without hints
//! each queue is woken once per poll interval.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use orchestrix_store::{
    ClaimRequest, ClaimedJob, Outcome, OutcomeReport, PollInterval, Queues, Result, Store, Wakeup, metrics,
};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

/// The most bytes of jobs in one response.
const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;
/// The size of the first claim of a response, before the size of the jobs is known.
const FIRST_CLAIM: usize = 32;

/// The shortest time between two rounds of wake-ups. Hints come faster than jobs.
const MIN_WAKE_INTERVAL: Duration = Duration::from_millis(5);

type WaitQueues = Mutex<HashMap<ClaimSelector, Arc<WaitQueue>>>;

/// Claims jobs for long polls.
pub(crate) struct LongPollHub {
    store: Arc<dyn Store>,
    /// Running claims, and releases of jobs that could not be delivered.
    tasks: TaskTracker,
    queues: Arc<WaitQueues>,
}

/// What a long poll waits for. Names are sorted, so that their order makes no difference; `None` means all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ClaimSelector {
    queues: Option<Vec<String>>,
    job_types: Option<Vec<String>>,
}

impl ClaimSelector {
    fn of(request: &ClaimRequest) -> Self {
        let sorted = |mut names: Vec<String>| {
            names.sort_unstable();
            names.dedup();
            names
        };
        Self {
            queues: match &request.queues {
                Queues::All => None,
                Queues::Named(names) => Some(sorted(names.iter().map(ToString::to_string).collect())),
            },
            job_types: request.job_types.as_ref().map(|names| sorted(names.iter().map(ToString::to_string).collect())),
        }
    }

    fn matches(&self, wakeup: &Wakeup) -> bool {
        match (wakeup, &self.queues) {
            (Wakeup::Anything, _) | (_, None) => true,
            (Wakeup::Queue(queue), Some(names)) => names.iter().any(|name| name == queue.as_str()),
        }
    }
}

/// The long polls with one selector. A permit of `claim` entitles one of them to try a claim.
#[derive(Default)]
struct WaitQueue {
    claim: Notify,
}

fn lock(queues: &WaitQueues) -> MutexGuard<'_, HashMap<ClaimSelector, Arc<WaitQueue>>> {
    queues.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LongPollHub {
    pub(crate) fn new(store: Arc<dyn Store>, poll_interval: Duration) -> Self {
        let queues = Arc::default();
        tokio::spawn(wake_queues(Arc::clone(&store), Arc::downgrade(&queues), poll_interval));
        Self { store, tasks: TaskTracker::new(), queues }
    }

    /// Waits until all running claims have ended and all undelivered jobs are released.
    pub(crate) async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Leases jobs as soon as there are any. Returns an empty batch at the deadline.
    pub(crate) async fn lease(&self, request: &ClaimRequest, deadline: Instant) -> Result<LeasedBatch> {
        // Joins the queue before the first claim, so that a wake-up between the claim and the wait is not lost.
        let queue = Arc::clone(lock(&self.queues).entry(ClaimSelector::of(request)).or_default());
        loop {
            let batch = self.claim(request).await?;
            if !batch.is_empty() {
                // There may be more jobs, for the next poll in the queue.
                queue.claim.notify_one();
                return Ok(batch);
            }
            let woken = tokio::time::timeout_at(deadline.into(), queue.claim.notified()).await;
            if woken.is_err() || Instant::now() >= deadline {
                // Passes the wake-up on to a poll that has time left.
                if woken.is_ok() {
                    queue.claim.notify_one();
                }
                return Ok(batch);
            }
        }
    }

    // The claim is a task of its own: if the client disconnects during the claim, dropping the batch releases the jobs.
    async fn claim(&self, request: &ClaimRequest) -> Result<LeasedBatch> {
        let (store, tasks) = (Arc::clone(&self.store), self.tasks.clone());
        let batch = LeasedBatch { jobs: Vec::new(), claim_started_at: Instant::now(), store, tasks };
        let claim = self.tasks.spawn(batch.fill(request.clone()));
        match claim.await {
            Ok(batch) => batch,
            Err(error) => Err(orchestrix_store::StoreError::Backend(Box::new(error))),
        }
    }
}

/// Leased jobs on their way to a worker. Dropping the batch releases the jobs that were not taken out.
pub(crate) struct LeasedBatch {
    jobs: Vec<ClaimedJob>,
    claim_started_at: Instant,
    store: Arc<dyn Store>,
    tasks: TaskTracker,
}

impl LeasedBatch {
    // Claims a few jobs first, and then as many more as fit into one response if they are of the same size.
    async fn fill(mut self, mut request: ClaimRequest) -> Result<Self> {
        let (limit, mut bytes) = (request.limit, 0);
        request.limit = limit.min(FIRST_CLAIM);
        loop {
            let started_at = Instant::now();
            let jobs = match self.store.claim_jobs(&request).await {
                Ok(jobs) => jobs,
                Err(error) if self.jobs.is_empty() => return Err(error),
                // The jobs that are leased already are delivered.
                Err(_) => return Ok(self),
            };
            metrics::claimed(started_at.elapsed(), &jobs);
            let exhausted = jobs.len() < request.limit;
            bytes += jobs.iter().map(size).sum::<usize>();
            self.jobs.extend(jobs);
            let left = limit.saturating_sub(self.jobs.len());
            if exhausted || left == 0 || bytes >= MAX_RESPONSE_BYTES {
                return Ok(self);
            }
            let average = (bytes / self.jobs.len()).max(1);
            request.limit = ((MAX_RESPONSE_BYTES - bytes) / average).clamp(1, left);
        }
    }

    /// When the claim that leased the jobs started.
    pub(crate) fn claim_started_at(&self) -> Instant {
        self.claim_started_at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(crate) fn into_jobs(mut self) -> Vec<ClaimedJob> {
        std::mem::take(&mut self.jobs)
    }
}

fn size(job: &ClaimedJob) -> usize {
    let results = job.dependency_results.iter().map(|(_, json)| json.as_str().len()).sum::<usize>();
    job.payload.as_str().len() + job.checkpoint.as_ref().map_or(0, |json| json.as_str().len()) + results
}

impl Drop for LeasedBatch {
    fn drop(&mut self) {
        if self.jobs.is_empty() {
            return;
        }
        let items: Vec<OutcomeReport> =
            self.jobs.iter().map(|job| OutcomeReport { token: job.token, outcome: Outcome::Release }).collect();
        let store = Arc::clone(&self.store);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let release = async move {
                let jobs = items.len();
                if let Err(error) = store.finish_attempts(items).await {
                    tracing::warn!(%error, jobs, "could not release undelivered jobs; their leases will expire");
                }
            };
            self.tasks.spawn_on(release, &runtime);
        }
    }
}

// Wakes the first poll of each wait queue, at a hint and once per poll interval.
async fn wake_queues(store: Arc<dyn Store>, queues: Weak<WaitQueues>, poll_interval: Duration) {
    let mut wakeups = store.job_wakeups();
    let mut polling = PollInterval::new(poll_interval);
    loop {
        let hint = wakeups.next_or_poll(&mut polling).await;
        let Some(queues) = queues.upgrade() else { return };
        lock(&queues).retain(|selector, queue| {
            // Only the map still refers to a queue without polls.
            let has_polls = Arc::strong_count(queue) > 1;
            if has_polls && selector.matches(&hint) {
                queue.claim.notify_one();
            }
            has_polls
        });
        drop(queues);
        tokio::time::sleep(MIN_WAKE_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::{JobState, JobType, Json, NewJob, WorkerName};
    use orchestrix_memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn jobs_claimed_for_a_client_that_has_disconnected_are_released() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let hub = LongPollHub::new(Arc::clone(&store), Duration::from_secs(1));
        let id = store.enqueue_job(NewJob::new(JobType::new("t").unwrap())).await.unwrap().id;
        let request = ClaimRequest::any(WorkerName::new("w").unwrap(), 1);
        {
            let lease = hub.lease(&request, Instant::now() + Duration::from_secs(60));
            tokio::pin!(lease);
            tokio::select! {
                biased;
                _ = &mut lease => panic!("the claim is a task, which has not run yet"),
                () = std::future::ready(()) => {}
            }
        }
        let released = async {
            loop {
                let job = store.job(id).await.unwrap().unwrap();
                if job.leases == 1 && job.state == JobState::Pending {
                    return job;
                }
                tokio::task::yield_now().await;
            }
        };
        let job = tokio::time::timeout(Duration::from_secs(20), released).await.unwrap();
        assert_eq!(job.attempts, 0, "a release costs no attempt");
    }

    #[tokio::test]
    async fn a_response_is_bounded_in_bytes_and_small_jobs_come_by_the_thousand() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let hub = LongPollHub::new(Arc::clone(&store), Duration::from_secs(1));
        let (small, large) = (JobType::new("small").unwrap(), JobType::new("large").unwrap());
        let payload = Json::trusted(&format!("\"{}\"", "x".repeat(Json::MAX_BYTES - 2)));
        for _ in 0..100 {
            store.enqueue_job(NewJob { payload: payload.clone(), ..NewJob::new(large.clone()) }).await.unwrap();
        }
        store.enqueue_jobs(vec![NewJob::new(small.clone()); 2_000]).await.unwrap();
        let lease = async |job_type: JobType, limit| {
            let any = ClaimRequest::any(WorkerName::new("w").unwrap(), limit);
            let request = ClaimRequest { job_types: Some(vec![job_type]), ..any };
            hub.lease(&request, Instant::now()).await.unwrap().into_jobs().len()
        };
        assert_eq!(lease(large.clone(), 100).await, MAX_RESPONSE_BYTES / Json::MAX_BYTES);
        assert_eq!(lease(large, 3).await, 3);
        assert_eq!(lease(small.clone(), 1_500).await, 1_500);
        assert_eq!(lease(small, 1_500).await, 500);
    }
}
