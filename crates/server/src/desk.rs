//! Workers that wait for jobs.
//!
//! Those that want the same (the same queues and types) stand in one line. A hint wakes the first of each line that it concerns;
//! whoever is given jobs wakes the next, and whoever is given none lets the line rest. So a hint costs one claim in vain for
//! each line, however many workers wait, and without hints each line is looked after once in a while.

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

/// The most bytes that one answer carries, and how many jobs are leased before it is known how large they are.
const BYTES: usize = 32 * 1024 * 1024;
const FIRST: usize = 32;

/// How soon a line that found nothing looks again after another hint: hints come faster than jobs.
const CALM: Duration = Duration::from_millis(5);

pub(crate) struct Desk {
    store: Arc<dyn Store>,
    /// Claims, and jobs on their way back.
    tasks: TaskTracker,
    lines: Arc<Mutex<HashMap<Wanted, Arc<Line>>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Wanted {
    /// Sorted, so that the order in which they were named makes no difference; none stands for all.
    queues: Option<Vec<String>>,
    job_types: Option<Vec<String>>,
}

impl Wanted {
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

    fn concerns(&self, wakeup: &Wakeup) -> bool {
        match (wakeup, &self.queues) {
            (Wakeup::Anything, _) | (_, None) => true,
            (Wakeup::Queue(queue), Some(names)) => names.iter().any(|name| name == queue.as_str()),
        }
    }
}

#[derive(Default)]
struct Line {
    /// One permit at most: it is somebody's turn to look.
    turn: Notify,
}

fn lock(lines: &Mutex<HashMap<Wanted, Arc<Line>>>) -> MutexGuard<'_, HashMap<Wanted, Arc<Line>>> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    pub(crate) fn new(store: Arc<dyn Store>, interval: Duration) -> Self {
        let lines = Arc::default();
        tokio::spawn(call_out(Arc::clone(&store), Arc::downgrade(&lines), interval));
        Self { store, tasks: TaskTracker::new(), lines }
    }

    /// Waits until what was leased for nobody is handed back.
    pub(crate) async fn cleared(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Leases jobs, at once or as soon as there are any; none when the time is over.
    pub(crate) async fn lease(&self, request: &ClaimRequest, until: Instant) -> Result<Delivery> {
        // In line before the first look, so that a hint which comes in between is kept.
        let line = Arc::clone(lock(&self.lines).entry(Wanted::of(request)).or_default());
        loop {
            let jobs = self.claim(request).await?;
            if !jobs.is_empty() {
                // There may be more, for whoever stands behind.
                line.turn.notify_one();
                return Ok(jobs);
            }
            let turn = tokio::time::timeout_at(until.into(), line.turn.notified()).await;
            if turn.is_err() || Instant::now() >= until {
                // It may be somebody's turn who has time.
                if turn.is_ok() {
                    line.turn.notify_one();
                }
                return Ok(jobs);
            }
        }
    }

    // In a task of its own: a client that goes away in the middle must not leave jobs leased to nobody.
    async fn claim(&self, request: &ClaimRequest) -> Result<Delivery> {
        let (store, tasks) = (Arc::clone(&self.store), self.tasks.clone());
        let delivery = Delivery { jobs: Vec::new(), begun: Instant::now(), store, tasks };
        let claim = self.tasks.spawn(delivery.fill(request.clone()));
        match claim.await {
            Ok(delivery) => delivery,
            Err(error) => Err(orchestrix_store::StoreError::Backend(Box::new(error))),
        }
    }
}

/// Jobs on their way to a worker. Whatever is not taken out is handed back.
pub(crate) struct Delivery {
    jobs: Vec<ClaimedJob>,
    begun: Instant,
    store: Arc<dyn Store>,
    tasks: TaskTracker,
}

impl Delivery {
    // A few first, and then as many more as fit into one answer, by the size of those.
    async fn fill(mut self, mut request: ClaimRequest) -> Result<Self> {
        let (most, mut bytes) = (request.limit, 0);
        request.limit = most.min(FIRST);
        loop {
            let begun = Instant::now();
            let jobs = match self.store.claim_jobs(&request).await {
                Ok(jobs) => jobs,
                Err(error) if self.jobs.is_empty() => return Err(error),
                // What is leased already is delivered.
                Err(_) => return Ok(self),
            };
            metrics::claimed(begun.elapsed(), &jobs);
            let all_there_are = jobs.len() < request.limit;
            bytes += jobs.iter().map(size).sum::<usize>();
            self.jobs.extend(jobs);
            let left = most.saturating_sub(self.jobs.len());
            if all_there_are || left == 0 || bytes >= BYTES {
                return Ok(self);
            }
            let each = (bytes / self.jobs.len()).max(1);
            request.limit = ((BYTES - bytes) / each).clamp(1, left);
        }
    }

    /// When the claim began that gave them.
    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(crate) fn take(mut self) -> Vec<ClaimedJob> {
        std::mem::take(&mut self.jobs)
    }
}

fn size(job: &ClaimedJob) -> usize {
    let results = job.dependency_results.iter().map(|(_, json)| json.as_str().len()).sum::<usize>();
    job.payload.as_str().len() + job.checkpoint.as_ref().map_or(0, |json| json.as_str().len()) + results
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if self.jobs.is_empty() {
            return;
        }
        let items: Vec<OutcomeReport> =
            self.jobs.iter().map(|job| OutcomeReport { token: job.token, outcome: Outcome::Release }).collect();
        let store = Arc::clone(&self.store);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let handed_back = async move {
                let jobs = items.len();
                if let Err(error) = store.finish_attempts(items).await {
                    tracing::warn!(%error, jobs, "jobs that nobody waited for any more come back when their leases end");
                }
            };
            self.tasks.spawn_on(handed_back, &runtime);
        }
    }
}

// Wakes the first of each line, at a hint and once in a while.
async fn call_out(store: Arc<dyn Store>, lines: Weak<Mutex<HashMap<Wanted, Arc<Line>>>>, interval: Duration) {
    let mut wakeups = store.job_wakeups();
    let mut polling = PollInterval::new(interval);
    loop {
        let hint = wakeups.next_or_poll(&mut polling).await;
        let Some(lines) = lines.upgrade() else { return };
        lock(&lines).retain(|wanted, line| {
            // Nobody stands in it any more.
            let stands = Arc::strong_count(line) > 1;
            if stands && wanted.concerns(&hint) {
                line.turn.notify_one();
            }
            stands
        });
        drop(lines);
        // However fast hints come, lines look no more often than this.
        tokio::time::sleep(CALM).await;
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::{JobState, JobType, Json, NewJob, WorkerName};
    use orchestrix_memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn jobs_that_were_claimed_for_a_client_that_is_gone_are_handed_back() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let desk = Desk::new(Arc::clone(&store), Duration::from_secs(1));
        let id = store.enqueue_job(NewJob::new(JobType::new("t").unwrap())).await.unwrap().id;
        let request = ClaimRequest::any(WorkerName::new("w").unwrap(), 1);
        {
            let lease = desk.lease(&request, Instant::now() + Duration::from_secs(60));
            tokio::pin!(lease);
            tokio::select! {
                biased;
                _ = &mut lease => panic!("the claim is a task, which has not run yet"),
                () = std::future::ready(()) => {}
            }
        }
        let handed_back = async {
            loop {
                let job = store.job(id).await.unwrap().unwrap();
                if job.leases == 1 && job.state == JobState::Pending {
                    return job;
                }
                tokio::task::yield_now().await;
            }
        };
        let job = tokio::time::timeout(Duration::from_secs(20), handed_back).await.unwrap();
        assert_eq!(job.attempts, 0, "at no cost");
    }

    #[tokio::test]
    async fn an_answer_is_bounded_in_bytes_and_small_jobs_come_by_the_thousand() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let desk = Desk::new(Arc::clone(&store), Duration::from_secs(1));
        let (small, large) = (JobType::new("small").unwrap(), JobType::new("large").unwrap());
        let payload = Json::trusted(&format!("\"{}\"", "x".repeat(Json::MAX_BYTES - 2)));
        for _ in 0..100 {
            store.enqueue_job(NewJob { payload: payload.clone(), ..NewJob::new(large.clone()) }).await.unwrap();
        }
        store.enqueue_jobs(vec![NewJob::new(small.clone()); 2_000]).await.unwrap();
        let lease = async |kind: JobType, most| {
            let any = ClaimRequest::any(WorkerName::new("w").unwrap(), most);
            let request = ClaimRequest { job_types: Some(vec![kind]), ..any };
            desk.lease(&request, Instant::now()).await.unwrap().take().len()
        };
        assert_eq!(lease(large.clone(), 100).await, BYTES / Json::MAX_BYTES);
        assert_eq!(lease(large, 3).await, 3);
        assert_eq!(lease(small.clone(), 1_500).await, 1_500);
        assert_eq!(lease(small, 1_500).await, 500);
    }
}
