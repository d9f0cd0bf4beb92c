//! Jobs that wait for their time, are worked on, fail, and are abandoned, whatever happens to the nodes.

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

/// The shortest there is.
pub(crate) const LEASE: Duration = Duration::from_secs(1);
/// How often jobs are recorded: there is always one that becomes due soon.
const PAUSE: Duration = Duration::from_millis(50);

/// Calls that go on until they are stopped.
pub(crate) struct Traffic {
    stopped: Arc<AtomicBool>,
    /// Leases whose holder never said a word again.
    abandoned: Arc<Mutex<Vec<LeaseToken>>>,
    calls: JoinSet<()>,
}

/// A job that any number of lost leases does not wear out.
pub(crate) fn patient() -> NewJob {
    NewJob { lease: LEASE, max_attempts: NewJob::MAX_ATTEMPTS, ..job("t") }
}

pub(crate) async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(PostgresOptions::new(format!("{url}?application_name=traffic"))).await.unwrap()
}

impl Traffic {
    pub(crate) async fn start(url: &str) -> Self {
        let store = open(url).await;
        let (stopped, abandoned) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<LeaseToken>>>::default());
        let mut calls = JoinSet::new();
        calls.spawn(produce(store.clone(), Arc::clone(&stopped)));
        calls.spawn(work(store, Arc::clone(&stopped), Arc::clone(&abandoned)));
        Self { stopped, abandoned, calls }
    }

    /// How many leases were abandoned so far.
    pub(crate) fn abandoned(&self) -> usize {
        self.abandoned.lock().unwrap().len()
    }

    /// Records no more, abandons no more, and ends once every job is done; answers with the leases that were abandoned.
    pub(crate) async fn finish(self) -> Vec<LeaseToken> {
        self.stopped.store(true, Ordering::Relaxed);
        self.calls.join_all().await;
        std::mem::take(&mut *self.abandoned.lock().unwrap())
    }
}

async fn produce(store: PostgresStore, stopped: Arc<AtomicBool>) {
    while !stopped.load(Ordering::Relaxed) {
        let later = |_| {
            let delay = Duration::from_millis(rand::random_range(30..600));
            NewJob { start: Start::After(delay), ..patient() }
        };
        wait_out(store.enqueue_jobs((0..3).map(later).collect()).await).await;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn work(store: PostgresStore, stopped: Arc<AtomicBool>, abandoned: Arc<Mutex<Vec<LeaseToken>>>) {
    loop {
        let last = stopped.load(Ordering::Relaxed);
        let worked = wait_out(work_once(&store, last, &abandoned).await).await;
        if worked == Some(0) && last && is_empty(&store).await {
            return;
        }
        tokio::time::sleep(PAUSE / 5).await;
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
    let depths = wait_out(store.queue_depths(&PageRequest::first(1_000)).await).await;
    depths.is_some_and(|depths| {
        depths.items.iter().filter(|depth| depth.queue == Queue::default()).all(|depth| depth.counts.is_empty())
    })
}

/// The database may be away; whether what was asked was done is then unknown.
async fn wait_out<T>(answer: Result<T>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(StoreError::Unavailable(_)) => {
            tokio::time::sleep(PAUSE).await;
            None
        }
        Err(error) => panic!("not what a caller would wait out: {error:?}"),
    }
}
