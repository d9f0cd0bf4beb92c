//! `drain`: claiming and completing until nothing is left.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use orchestrix_core::WorkerName;
use orchestrix_store::{ClaimRequest, Outcome, OutcomeReport, Store};

/// Who claims at once.
pub(crate) const CLAIMERS: usize = 4;
/// How many jobs are drained while the clock runs, unless a figure says otherwise.
pub(crate) const JOBS: usize = 100_000;

/// How many jobs are drained before it starts: after five executions a statement has got its lasting plan.
pub(crate) const fn warm(batch: usize) -> usize {
    6 * CLAIMERS * batch
}

/// How long claims may find nothing although there is something.
const PATIENCE: Duration = Duration::from_secs(20);

/// Jobs that claimers share out among themselves, so that together they drain an exact number.
#[derive(Debug, Clone)]
struct Share(Arc<AtomicUsize>);

impl Share {
    fn new(jobs: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(jobs)))
    }

    /// Takes up to `batch`; none is left when it answers zero.
    fn take(&self, batch: usize) -> usize {
        let take = |left: usize| Some(left.saturating_sub(batch));
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).unwrap_or_default();
        left.min(batch)
    }

    /// Gives back what was taken and not found.
    fn give_back(&self, jobs: usize) {
        self.0.fetch_add(jobs, Ordering::Relaxed);
    }
}

/// Somebody who drains batch by batch.
pub(crate) trait Claimer: Send + 'static {
    /// Claims and completes up to `batch` jobs; answers how many it were.
    fn work(&self, batch: usize) -> impl Future<Output = Result<usize>> + Send;
}

/// Drains exactly `jobs` with all claimers at once, and gives them back.
pub(crate) async fn drain_all<C: Claimer>(claimers: Vec<C>, batch: usize, jobs: usize) -> Result<Vec<C>> {
    let share = Share::new(jobs);
    let tasks = claimers.into_iter().map(|claimer| {
        let share = share.clone();
        tokio::spawn(async move {
            let mut found = Instant::now();
            loop {
                let wanted = share.take(batch);
                if wanted == 0 {
                    return anyhow::Ok(claimer);
                }
                let done = claimer.work(wanted).await?;
                share.give_back(wanted - done);
                if done > 0 {
                    found = Instant::now();
                } else {
                    ensure!(found.elapsed() < PATIENCE, "claims find nothing, though there are jobs");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        })
    });
    let mut claimers = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        claimers.push(task.await??);
    }
    Ok(claimers)
}

/// A claimer of our store.
struct StoreClaimer {
    store: Arc<dyn Store>,
    worker: WorkerName,
}

impl Claimer for StoreClaimer {
    async fn work(&self, batch: usize) -> Result<usize> {
        let claimed = self.store.claim_jobs(&ClaimRequest::any(self.worker.clone(), batch)).await?;
        if claimed.is_empty() {
            return Ok(0);
        }
        let items = claimed.iter().map(|job| OutcomeReport { token: job.token, outcome: Outcome::DONE }).collect();
        for answer in self.store.finish_attempts(items).await? {
            answer?;
        }
        Ok(claimed.len())
    }
}

/// Claims and completes `jobs` jobs through the store, by four claimers.
pub(crate) async fn drain(store: &Arc<dyn Store>, batch: usize, jobs: usize) -> Result<u64> {
    let claimer = |n| StoreClaimer { store: Arc::clone(store), worker: WorkerName::trusted(&format!("bench-{n}")) };
    drain_all((0..CLAIMERS).map(claimer).collect(), batch, jobs).await?;
    Ok(jobs as u64)
}
