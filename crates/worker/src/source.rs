//! Where a worker gets its jobs from and tells what became of them.

use std::{sync::Arc, time::Instant};

use async_trait::async_trait;
use orchestrix_core::{JobState, LeaseToken, NewJob, WorkerName};
use orchestrix_store::{
    ClaimRequest, ClaimedJob, Directive, Enqueued, FinishError, LeaseStatus, LogLine, OutcomeReport, Presence,
    ProgressUpdate, Result, Store, StoreError, Wakeups, WorkerInfo, metrics,
};

/// The other side of a worker: a store, or whatever stands between it and one.
#[async_trait]
pub trait JobSource: Send + Sync + 'static {
    /// Leases some jobs.
    async fn lease(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>>;

    /// Leases some jobs as soon as there are any, for a while; none when it is over. Also tells from when on, at the earliest,
    /// their leases run. May be dropped at any time: what was leased for it is handed back. `None`, at once, where hints take its
    /// place.
    async fn await_jobs(&self, _request: &ClaimRequest) -> Result<Option<(Vec<ClaimedJob>, Instant)>> {
        Ok(None)
    }

    /// Extends leases; answers in the order of `tokens`.
    async fn extend(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>>;

    /// Ends attempts, each by itself; answers in the order of `items`. Safe to repeat.
    async fn report(&self, items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>>;

    /// Records how far a running job has come.
    async fn progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()>;

    /// Adds lines to the log of a running job.
    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()>;

    /// Records jobs, all or none.
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>>;

    /// Makes the worker known.
    async fn register(&self, worker: &WorkerInfo) -> Result<()>;

    /// Shows that the worker lives; answers what it should do, or `None` if it is not known (any more).
    async fn show(&self, worker: &WorkerName, presence: Presence) -> Result<Option<Directive>>;

    /// Takes the worker off the list.
    async fn leave(&self, worker: &WorkerInfo) -> Result<()>;

    /// Hints that jobs may be had.
    fn wakeups(&self) -> Wakeups;

    /// The same source through connections of its own, driven by the runtime of whoever calls.
    fn apart(&self) -> Result<Arc<dyn JobSource>>;

    /// The store itself, where the worker is in touch with it: such a worker may lead.
    fn store(&self) -> Option<&Arc<dyn Store>>;
}

/// Jobs straight from a store.
#[derive(Clone)]
pub struct StoreSource(Arc<dyn Store>);

impl StoreSource {
    /// Connections for whoever must not depend on the runtime that handlers use: claims, outcomes, heartbeats, presence, and a
    /// coordinator's services.
    const APART: usize = 6;

    /// Jobs from this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

// Counts what was refused because the lease was lost. Over HTTP the server does.
fn refused(answer: Result<()>) -> Result<()> {
    metrics::stale_writes(usize::from(matches!(answer, Err(StoreError::LeaseLost))));
    answer
}

#[async_trait]
impl JobSource for StoreSource {
    async fn lease(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
        let begun = Instant::now();
        let claimed = self.0.claim_jobs(request).await?;
        metrics::claimed(begun.elapsed(), &claimed);
        Ok(claimed)
    }

    async fn extend(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        self.0.extend_leases(tokens).await
    }

    async fn report(&self, items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>> {
        let answers = self.0.finish_attempts(items).await?;
        metrics::stale_writes(answers.iter().filter(|answer| **answer == Err(FinishError::LeaseLost)).count());
        Ok(answers)
    }

    async fn progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        refused(self.0.record_progress(token, update).await)
    }

    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
        refused(self.0.append_logs(token, lines).await)
    }

    async fn enqueue(&self, mut jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        match (jobs.len(), jobs.pop()) {
            // Alone it shares a commit with others.
            (1, Some(job)) => Ok(vec![self.0.enqueue_job(job).await?]),
            (_, last) => {
                jobs.extend(last);
                self.0.enqueue_jobs(jobs).await
            }
        }
    }

    async fn register(&self, worker: &WorkerInfo) -> Result<()> {
        self.0.register_worker(worker).await.map(drop)
    }

    async fn show(&self, worker: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
        self.0.heartbeat_worker(worker, presence).await
    }

    async fn leave(&self, worker: &WorkerInfo) -> Result<()> {
        self.0.remove_worker(&worker.name, worker.instance.as_ref()).await.map(drop)
    }

    fn wakeups(&self) -> Wakeups {
        self.0.job_wakeups()
    }

    fn apart(&self) -> Result<Arc<dyn JobSource>> {
        Ok(Arc::new(Self(self.0.dedicated_handle(Self::APART)?)))
    }

    fn store(&self) -> Option<&Arc<dyn Store>> {
        Some(&self.0)
    }
}
