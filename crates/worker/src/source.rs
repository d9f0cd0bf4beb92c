//! The [`JobSource`] trait, and the source that reads a store directly.

use std::{sync::Arc, time::Instant};

use async_trait::async_trait;
use orchestrix_core::{JobState, LeaseToken, NewJob, WorkerName};
use orchestrix_store::{
    ClaimRequest, ClaimedJob, Directive, Enqueued, FinishError, LeaseStatus, LogLine, OutcomeReport, Presence,
    ProgressUpdate, Result, Store, StoreError, Wakeups, WorkerInfo, metrics,
};

/// The store operations that a worker needs, with the store's names. A source is a store, or a server in front of one.
#[async_trait]
pub trait JobSource: Send + Sync + 'static {
    /// Claims up to `request.limit` jobs that are claimable now.
    async fn claim_jobs(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>>;

    /// Claims jobs by a long poll: waits at the source until some are claimable. Returns no jobs when the poll times
    /// out.
    ///
    /// The returned instant is the earliest time at which the leases can have begun. The caller may drop the future at
    /// any time; the source then releases what it claimed for it. The default returns `None` at once: the source has no
    /// long poll, and sends [wake-ups](JobSource::job_wakeups) instead.
    async fn long_poll_jobs(&self, _request: &ClaimRequest) -> Result<Option<(Vec<ClaimedJob>, Instant)>> {
        Ok(None)
    }

    /// Extends leases. Returns one status per token, in order.
    async fn extend_leases(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>>;

    /// Ends attempts, each on its own. Returns one result per item, in order. Safe to repeat.
    async fn finish_attempts(&self, items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>>;

    /// Records the progress and the checkpoint of a running job.
    async fn record_progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()>;

    /// Appends lines to the log of a running job.
    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()>;

    /// Enqueues all jobs or none.
    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>>;

    /// Registers the worker, or updates its registration.
    async fn register_worker(&self, worker: &WorkerInfo) -> Result<()>;

    /// Sends a heartbeat. Returns the worker's directive, or `None` if the worker is not registered.
    async fn heartbeat_worker(&self, worker: &WorkerName, presence: Presence) -> Result<Option<Directive>>;

    /// Removes the worker's registration.
    async fn remove_worker(&self, worker: &WorkerInfo) -> Result<()>;

    /// Subscribes to wake-ups: hints that jobs became claimable.
    fn job_wakeups(&self) -> Wakeups;

    /// Returns the same source with its own connections, driven by the runtime of the caller.
    fn dedicated_handle(&self) -> Result<Arc<dyn JobSource>>;
}

/// A [`JobSource`] that reads a store directly.
#[derive(Clone)]
pub struct StoreSource(Arc<dyn Store>);

impl StoreSource {
    /// Reads jobs from `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

/// Where a worker's jobs come from. Only a worker with direct access to a store can run a coordinator.
pub(crate) enum JobBackend {
    Store(Arc<dyn Store>),
    Source(Arc<dyn JobSource>),
}

/// The connections of a control thread: for claims, outcomes, lease and worker heartbeats, and the coordinator's
/// services.
const CONTROL_CONNECTIONS: usize = 6;

impl JobBackend {
    pub(crate) fn source(&self) -> Arc<dyn JobSource> {
        match self {
            Self::Store(store) => Arc::new(StoreSource::new(Arc::clone(store))),
            Self::Source(source) => Arc::clone(source),
        }
    }

    pub(crate) fn store(&self) -> Option<&Arc<dyn Store>> {
        match self {
            Self::Store(store) => Some(store),
            Self::Source(_) => None,
        }
    }

    /// The same backend with connections that do not depend on the runtime of the handlers. A source and a coordinator
    /// on one control thread share them.
    pub(crate) fn dedicated_handle(&self) -> Result<Self> {
        Ok(match self {
            Self::Store(store) => Self::Store(store.dedicated_handle(CONTROL_CONNECTIONS)?),
            Self::Source(source) => Self::Source(source.dedicated_handle()?),
        })
    }
}

/// Counts a write that was refused because its lease is lost. Over HTTP the server counts it.
fn count_stale_write(result: Result<()>) -> Result<()> {
    metrics::stale_writes(usize::from(matches!(result, Err(StoreError::LeaseLost))));
    result
}

#[async_trait]
impl JobSource for StoreSource {
    async fn claim_jobs(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
        let started = Instant::now();
        let claimed = self.0.claim_jobs(request).await?;
        metrics::claimed(started.elapsed(), &claimed);
        Ok(claimed)
    }

    async fn extend_leases(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        self.0.extend_leases(tokens).await
    }

    async fn finish_attempts(&self, items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>> {
        let results = self.0.finish_attempts(items).await?;
        metrics::stale_writes(results.iter().filter(|result| **result == Err(FinishError::LeaseLost)).count());
        Ok(results)
    }

    async fn record_progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        count_stale_write(self.0.record_progress(token, update).await)
    }

    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
        count_stale_write(self.0.append_logs(token, lines).await)
    }

    async fn enqueue_jobs(&self, mut jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        match (jobs.len(), jobs.pop()) {
            // A single job can share a group commit with others.
            (1, Some(job)) => Ok(vec![self.0.enqueue_job(job).await?]),
            (_, last) => {
                jobs.extend(last);
                self.0.enqueue_jobs(jobs).await
            }
        }
    }

    async fn register_worker(&self, worker: &WorkerInfo) -> Result<()> {
        self.0.register_worker(worker).await.map(drop)
    }

    async fn heartbeat_worker(&self, worker: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
        self.0.heartbeat_worker(worker, presence).await
    }

    async fn remove_worker(&self, worker: &WorkerInfo) -> Result<()> {
        self.0.remove_worker(&worker.name, worker.instance.as_ref()).await.map(drop)
    }

    fn job_wakeups(&self) -> Wakeups {
        self.0.job_wakeups()
    }

    fn dedicated_handle(&self) -> Result<Arc<dyn JobSource>> {
        Ok(Arc::new(Self(self.0.dedicated_handle(CONTROL_CONNECTIONS)?)))
    }
}
