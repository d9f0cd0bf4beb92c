//! `drain`: claims and completes jobs until none is left.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use orchestrix_core::{JobId, Priority, WorkerName};
use orchestrix_store::{ClaimRequest, ClaimedJob, Outcome, OutcomeReport, Store};

/// Concurrent claimers.
pub(crate) const CLAIMERS: usize = 4;
/// The default number of timed jobs.
pub(crate) const JOBS: usize = 100_000;

/// Jobs drained before the clock starts: after five executions a statement has its final plan.
pub(crate) const fn warm(batch: usize) -> usize {
    6 * CLAIMERS * batch
}

/// How long claims may find nothing although jobs are left.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A number of jobs that claimers budget, so that together they drain exactly that many.
#[derive(Debug, Clone)]
struct JobBudget(Arc<AtomicUsize>);

impl JobBudget {
    fn new(jobs: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(jobs)))
    }

    /// Takes up to `batch`; zero means that none is left.
    fn take(&self, batch: usize) -> usize {
        let take = |left: usize| Some(left.saturating_sub(batch));
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).unwrap_or_default();
        left.min(batch)
    }

    /// Returns jobs that were taken but not found.
    fn put_back(&self, jobs: usize) {
        self.0.fetch_add(jobs, Ordering::Relaxed);
    }
}

/// Drains batch by batch.
pub(crate) trait Claimer: Send + 'static {
    /// Claims and completes up to `batch` jobs; returns their number.
    fn work(&mut self, batch: usize) -> impl Future<Output = Result<usize>> + Send;
}

/// Drains exactly `jobs` with all claimers, and returns the claimers.
pub(crate) async fn drain_all<C: Claimer>(claimers: Vec<C>, batch: usize, jobs: usize) -> Result<Vec<C>> {
    let budget = JobBudget::new(jobs);
    let tasks = claimers.into_iter().map(|mut claimer| {
        let budget = budget.clone();
        tokio::spawn(async move {
            let mut found = Instant::now();
            loop {
                let taken = budget.take(batch);
                if taken == 0 {
                    return anyhow::Ok(claimer);
                }
                let done = claimer.work(taken).await?;
                budget.put_back(taken - done);
                if done > 0 {
                    found = Instant::now();
                } else {
                    ensure!(found.elapsed() < TIMEOUT, "claims return nothing although jobs are left");
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

/// Completes claimed jobs.
pub(crate) async fn complete_jobs(store: &Arc<dyn Store>, claimed: &[ClaimedJob]) -> Result<()> {
    let items = claimed.iter().map(|job| OutcomeReport { token: job.token, outcome: Outcome::DONE }).collect();
    for answer in store.finish_attempts(items).await? {
        answer?;
    }
    Ok(())
}

/// A claimer of the store.
struct StoreClaimer {
    store: Arc<dyn Store>,
    request: ClaimRequest,
    claimed: Vec<JobId>,
}

impl Claimer for StoreClaimer {
    async fn work(&mut self, batch: usize) -> Result<usize> {
        self.request.limit = batch;
        let claimed = self.store.claim_jobs(&self.request).await?;
        if claimed.is_empty() {
            return Ok(0);
        }
        // Only jobs that must not be claimed have another priority.
        ensure!(
            claimed.iter().all(|job| job.priority == Priority::default()),
            "a claim returned a job of a type that it does not name, or of a paused queue"
        );
        complete_jobs(&self.store, &claimed).await?;
        self.claimed.extend(claimed.iter().map(ClaimedJob::id));
        Ok(claimed.len())
    }
}

/// Claims and completes `jobs` jobs of any kind through the store, with four claimers.
pub(crate) async fn drain(store: &Arc<dyn Store>, batch: usize, jobs: usize) -> Result<u64> {
    let request = ClaimRequest::any(WorkerName::trusted("bench"), batch);
    Ok(drain_matching(store, &request, jobs).await?.len() as u64)
}

/// Claims and completes `jobs` jobs that `request` names; returns the ids of the claimed jobs.
pub(crate) async fn drain_matching(store: &Arc<dyn Store>, request: &ClaimRequest, jobs: usize) -> Result<Vec<JobId>> {
    let claimer = |n| {
        let worker = WorkerName::trusted(&format!("{}-{n}", request.worker.as_str()));
        let request = ClaimRequest { worker, ..request.clone() };
        StoreClaimer { store: Arc::clone(store), request, claimed: Vec::new() }
    };
    let claimers = drain_all((0..CLAIMERS).map(claimer).collect(), request.limit, jobs).await?;
    Ok(claimers.into_iter().flat_map(|claimer| claimer.claimed).collect())
}
