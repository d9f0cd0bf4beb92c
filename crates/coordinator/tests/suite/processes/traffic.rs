//! A workload of jobs that are delayed, completed, failed and abandoned while faults hit the nodes.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use orchestrix_core::{LeaseToken, NewJob, Queue, Start, WorkerName};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{ClaimRequest, Outcome, OutcomeReport, PageRequest, Queues, Result, StoreError, prelude::*};
use tokio::task::JoinSet;

use crate::support::job;

/// The shortest possible lease.
pub(crate) const LEASE: Duration = Duration::from_secs(1);
/// The interval between two enqueues. Short, so that a job becomes due all the time.
const INTERVAL: Duration = Duration::from_millis(50);

/// Tasks that enqueue and run jobs until they are stopped.
pub(crate) struct Traffic {
    stopped: Arc<AtomicBool>,
    /// Leases that their worker abandoned.
    abandoned: Arc<Mutex<Vec<LeaseToken>>>,
    tasks: JoinSet<()>,
}

/// A job with the maximum number of attempts, so that lost leases do not make it dead.
pub(crate) fn retrying_job() -> NewJob {
    NewJob { lease: LEASE, max_attempts: NewJob::MAX_ATTEMPTS, ..job("t") }
}

pub(crate) async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(PostgresOptions::new(format!("{url}?application_name=traffic"))).await.unwrap()
}

impl Traffic {
    pub(crate) async fn start(url: &str) -> Self {
        let store = open(url).await;
        let (stopped, abandoned) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<LeaseToken>>>::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(produce(store.clone(), Arc::clone(&stopped)));
        tasks.spawn(work(store, Arc::clone(&stopped), Arc::clone(&abandoned)));
        Self { stopped, abandoned, tasks }
    }

    /// The number of leases that were abandoned so far.
    pub(crate) fn abandoned(&self) -> usize {
        self.abandoned.lock().unwrap().len()
    }

    /// Stops enqueueing and abandoning, waits until every job has finished, and returns the abandoned leases.
    pub(crate) async fn finish(self) -> Vec<LeaseToken> {
        self.stopped.store(true, Ordering::Relaxed);
        self.tasks.join_all().await;
        std::mem::take(&mut *self.abandoned.lock().unwrap())
    }
}

async fn produce(store: PostgresStore, stopped: Arc<AtomicBool>) {
    while !stopped.load(Ordering::Relaxed) {
        let later = |_| {
            let delay = Duration::from_millis(rand::random_range(30..600));
            NewJob { start: Start::After(delay), ..retrying_job() }
        };
        tolerate_outage(store.enqueue_jobs((0..3).map(later).collect()).await).await;
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn work(store: PostgresStore, stopped: Arc<AtomicBool>, abandoned: Arc<Mutex<Vec<LeaseToken>>>) {
    loop {
        let last = stopped.load(Ordering::Relaxed);
        let worked = tolerate_outage(work_once(&store, last, &abandoned).await).await;
        if worked == Some(0) && last && is_empty(&store).await {
            return;
        }
        tokio::time::sleep(INTERVAL / 5).await;
    }
}

async fn work_once(store: &PostgresStore, last: bool, abandoned: &Mutex<Vec<LeaseToken>>) -> Result<usize> {
    let queues = Queues::Named(vec![Queue::default()]);
    let claimed = store.claim_jobs(&ClaimRequest { queues, ..ClaimRequest::any(WorkerName::trusted("w"), 50) }).await?;
    let mut items = Vec::new();
    for claimed in &claimed {
        let outcome = match rand::random_range(0..10) {
            0 | 1 if !last => {
                abandoned.lock().unwrap().push(claimed.token);
                continue;
            }
            2 if !last => {
                let retry_after = Some(Duration::from_millis(rand::random_range(50..300)));
                Outcome::Fail { error: "no".into(), retryable: true, retry_after }
            }
            _ => Outcome::DONE,
        };
        items.push(OutcomeReport { token: claimed.token, outcome });
    }
    store.finish_attempts(items).await?;
    Ok(claimed.len())
}

async fn is_empty(store: &PostgresStore) -> bool {
    let depths = tolerate_outage(store.queue_depths(&PageRequest::first(1_000)).await).await;
    depths.is_some_and(|depths| {
        depths.items.iter().filter(|depth| depth.queue == Queue::default()).all(|depth| depth.counts.is_empty())
    })
}

/// Returns `None` after a pause if the database is unavailable. It is then unknown whether the call took effect.
async fn tolerate_outage<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(StoreError::Unavailable(_)) => {
            tokio::time::sleep(INTERVAL).await;
            None
        }
        Err(error) => panic!("a call failed although the database is available: {error:?}"),
    }
}
