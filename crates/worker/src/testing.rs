//! Helpers for tests of an application's own jobs: run one job inline, drain all claimable jobs, list enqueued jobs.
//!
//! There are no mocks. Jobs go through a store (in memory by default) and the production code that executes attempts,
//! one job at a time and only when the test calls for it.

use std::{sync::Arc, time::Instant};

use orchestrix_client::{Client, Job, Request};
use orchestrix_core::{JobId, JobState, JobType, Timestamp};
use orchestrix_memory::MemoryStore;
use orchestrix_store::{
    ClaimRequest, Fence, JobFilter, ManualClock, Outcome, OutcomeReport, PageRequest, Store, StoreError,
};

use crate::{
    Context, JobError, JobResult, Run, WorkerBuilder, WorkerError, context::ContextShared, execute::execute,
    log_writer, shared_state::SharedState, source::JobBackend,
};

/// Creates a client with an empty in-memory store, and the store's clock, which the test advances.
pub fn memory() -> (Client, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(Timestamp::now()));
    (Client::new(MemoryStore::with_clock(Arc::clone(&clock) as Arc<_>)), clock)
}

/// Runs one job inline and returns the result of its handler.
///
/// ```
/// # use orchestrix_client::Job;
/// # use orchestrix_worker::{Context, JobResult, Run, testing};
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Double { n: u32 }
/// # impl Job for Double { type Output = u32; const TYPE: &'static str = "double"; }
/// # impl Run for Double { async fn run(self, _: Context) -> JobResult<u32> { Ok(self.n * 2) } }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// assert_eq!(testing::run(Double { n: 21 }).await.unwrap(), 42);
/// # }
/// ```
pub async fn run<J: Run>(request: impl Into<Request<J>>) -> JobResult<J::Output> {
    Inline::new().run(request).await
}

/// Runs one job inline, with shared state and a chosen store.
pub struct Inline {
    client: Client,
    state: SharedState,
}

impl Default for Inline {
    fn default() -> Self {
        Self::new()
    }
}

impl Inline {
    /// Uses an empty in-memory store and no shared state.
    pub fn new() -> Self {
        Self::on(&memory().0)
    }

    /// Uses the client's store, which afterwards holds what the job enqueued and logged.
    pub fn on(client: &Client) -> Self {
        Self { client: client.clone(), state: SharedState::default() }
    }

    /// Shares a value with the handler, like [`WorkerBuilder::state`].
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.state.insert(value);
        self
    }

    /// Enqueues the job, runs its first attempt and reports the outcome to the store.
    pub async fn run<J: Run>(self, request: impl Into<Request<J>>) -> JobResult<J::Output> {
        let store = self.client.store();
        let id = store.enqueue_job(request.into().build()?).await?.id;
        let worker = "inline".parse()?;
        let job_types = Some(vec![JobType::new(J::TYPE)?]);
        let request = ClaimRequest { job_types, ..ClaimRequest::any(worker, ClaimRequest::MAX_LIMIT) };
        let mut claimed_job = None;
        for claimed in store.claim_jobs(&request).await? {
            match claimed.id() == id {
                true => claimed_job = Some(claimed),
                false => release(&**store, claimed.token).await?,
            }
        }
        let claimed = claimed_job
            .ok_or_else(|| JobError::new(format!("job {id} is not claimable: is it delayed, held or blocked?")))?;
        let backend = JobBackend::Store(Arc::clone(store));
        let (contexts, _flush_requests) = ContextShared::new(&backend, self.state);
        let context = Context::new(claimed, Instant::now(), Arc::new(contexts));
        let result = match crate::handler::parse_payload::<J>(context.payload()) {
            Ok(job) => job.run(context.clone()).await,
            Err(error) => Err(error),
        };
        log_writer::write(&*backend.source(), &context).await?;
        let outcome = match &result {
            Ok(output) => Outcome::Complete { result: crate::context::serialize_output(output)? },
            Err(error) => error.outcome(),
        };
        for reported in store.finish_attempts(vec![OutcomeReport { token: context.lease_token(), outcome }]).await? {
            reported?;
        }
        result
    }
}

async fn release(store: &dyn Store, token: orchestrix_core::LeaseToken) -> JobResult {
    store.finish_attempts(vec![OutcomeReport { token, outcome: Outcome::Release }]).await?;
    Ok(())
}

/// One attempt made by [`WorkerBuilder::drain`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainedAttempt {
    /// The job's id.
    pub id: JobId,
    /// The job's type.
    pub job_type: JobType,
    /// The job's state after the attempt.
    pub state: JobState,
}

impl WorkerBuilder {
    /// For tests: runs all claimable jobs one at a time, including jobs that become claimable meanwhile. Returns the
    /// attempts in order. Leaves jobs whose start time is in the future.
    ///
    /// # Errors
    /// If the store fails, or after 10,000 attempts: some job then keeps becoming claimable.
    pub async fn drain(self) -> Result<Vec<DrainedAttempt>, WorkerError> {
        let (shared, mut inputs, _) = self.build()?;
        let source = &shared.contexts.source;
        let mut attempts = Vec::new();
        loop {
            if let Some(store) = shared.backend.store() {
                store.unblock_jobs(Fence::NONE, 1_000).await?;
                store.promote_jobs(Fence::NONE, 1_000).await?;
            }
            let mut claimed = None;
            inputs.planner.claim(&**source, 1, |mut jobs, _| claimed = jobs.pop().or(claimed.take())).await?;
            let Some(claimed) = claimed else { return Ok(attempts) };
            if attempts.len() == 10_000 {
                let text = "10,000 attempts and jobs are still claimable: some job keeps becoming claimable";
                return Err(StoreError::Backend(text.into()).into());
            }
            let (id, job_type, token) = (claimed.id(), claimed.job_type.clone(), claimed.token);
            let context = Context::new(claimed, Instant::now(), Arc::clone(&shared.contexts));
            let (outcome, _) = execute(&shared.service, &context, &shared.options, &shared.counters).await;
            log_writer::write(&**source, &context).await?;
            let Some(outcome) = outcome else { continue };
            for reported in source.finish_attempts(vec![OutcomeReport { token, outcome }]).await? {
                let state = reported.map_err(|error| StoreError::Backend(error.into()))?;
                attempts.push(DrainedAttempt { id, job_type: job_type.clone(), state });
            }
        }
    }
}

/// Lists the unfinished jobs of one type, newest first, at most 1,000. `assert_enqueued!` uses it.
pub async fn enqueued<J: Job>(client: &Client) -> Vec<J> {
    let filter = JobFilter { job_type: Some(JobType::trusted(J::TYPE)), ..JobFilter::default() };
    let store = client.store();
    let page = store.list_jobs(&filter, &PageRequest::first(1_000)).await.expect("the store can list jobs");
    let mut jobs = Vec::new();
    for summary in page.items.into_iter().filter(|job| !job.state.is_terminal()) {
        if let Some(job) = store.job(summary.id).await.expect("the store can load a job") {
            jobs.push(
                job.payload
                    .to()
                    .unwrap_or_else(|error| panic!("the payload of job {} is no {}: {error}", job.id, J::TYPE)),
            );
        }
    }
    jobs
}
