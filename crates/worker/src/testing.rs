//! For tests of an application's own jobs: run one in place, run all that wait, look at what was recorded.
//!
//! Nothing here is pretended: jobs go through a store (in memory unless you bring another) and the same execution
//! as in production, only one at a time and when the test says so.

use std::{sync::Arc, time::Instant};

use orchestrix_client::{Client, Job, Request};
use orchestrix_core::{JobId, JobState, JobType, Timestamp};
use orchestrix_memory::MemoryStore;
use orchestrix_store::{ClaimRequest, Fence, JobFilter, ManualClock, OutcomeReport, PageRequest, Store, StoreError};

use crate::{
    Context, JobError, JobResult, Run, StoreSource, WorkerBuilder, WorkerError,
    execute::execute,
    report::{self, Desk},
    state::States,
};

/// A client of an empty store in memory, and the clock that it goes by. Time passes when the clock is told to.
pub fn memory() -> (Client, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(Timestamp::now()));
    (Client::new(MemoryStore::with_clock(Arc::clone(&clock) as Arc<_>)), clock)
}

/// Runs one job in place and gives what its handler returned.
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

/// Runs one job in place, with state and against a store.
pub struct Inline {
    client: Client,
    states: States,
}

impl Default for Inline {
    fn default() -> Self {
        Self::new()
    }
}

impl Inline {
    /// With an empty store in memory and no state.
    pub fn new() -> Self {
        Self::on(&memory().0)
    }

    /// With the store of this client: what the job enqueues and logs is there afterwards.
    pub fn on(client: &Client) -> Self {
        Self { client: client.clone(), states: States::default() }
    }

    /// Shares a value with the handler.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.put(value);
        self
    }

    /// Runs the job as its first attempt; the store is told how it ended.
    pub async fn run<J: Run>(self, request: impl Into<Request<J>>) -> JobResult<J::Output> {
        let store = self.client.store();
        let id = store.enqueue_job(request.into().build()?).await?.id;
        let worker = "inline".parse()?;
        let job_types = Some(vec![JobType::new(J::TYPE)?]);
        let request = ClaimRequest { job_types, ..ClaimRequest::any(worker, ClaimRequest::MAX_LIMIT) };
        let mut mine = None;
        for claimed in store.claim_jobs(&request).await? {
            match claimed.id() == id {
                true => mine = Some(claimed),
                false => release(&**store, claimed.token).await?,
            }
        }
        let claimed = mine.ok_or_else(|| JobError::new(format!("job {id} cannot run now: is it delayed or held?")))?;
        let source = Arc::new(StoreSource::new(Arc::clone(store)));
        let (desk, _announcements) = Desk::new(source.clone());
        let context = Context::new(claimed, Instant::now(), Arc::new(desk), Arc::new(self.states));
        let answer = match crate::handler::read::<J>(context.payload()) {
            Ok(job) => job.run(context.clone()).await,
            Err(error) => Err(error),
        };
        report::write(&*source, &context).await?;
        let outcome = match &answer {
            Ok(output) => orchestrix_store::Outcome::Complete { result: crate::context::result_of(output)? },
            Err(error) => error.outcome(),
        };
        for told in store.finish_attempts(vec![OutcomeReport { token: context.lease_token(), outcome }]).await? {
            told?;
        }
        answer
    }
}

async fn release(store: &dyn Store, token: orchestrix_core::LeaseToken) -> JobResult {
    store.finish_attempts(vec![OutcomeReport { token, outcome: orchestrix_store::Outcome::Release }]).await?;
    Ok(())
}

/// One attempt that [`WorkerBuilder::drain`] made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Which job.
    pub id: JobId,
    /// Of what type.
    pub job_type: JobType,
    /// Where it stood afterwards.
    pub state: JobState,
}

impl WorkerBuilder {
    /// For tests: works on what can be claimed now, one job at a time, and on what becomes claimable by that, until there is
    /// nothing more; gives what was run, in order. Jobs that wait for a time are left, unless it has come.
    ///
    /// # Errors
    /// If the store fails, and after ten thousand attempts: something feeds itself.
    pub async fn drain(self) -> Result<Vec<Ran>, WorkerError> {
        let (shop, mut parts, _) = self.build()?;
        let mut ran = Vec::new();
        loop {
            if let Some(store) = shop.source.store() {
                store.unblock_jobs(Fence::NONE, 1_000).await?;
                store.promote_jobs(Fence::NONE, 1_000).await?;
            }
            let mut claimed = None;
            parts.demand.claim(&*shop.source, 1, |mut jobs, _| claimed = jobs.pop().or(claimed.take())).await?;
            let Some(claimed) = claimed else { return Ok(ran) };
            if ran.len() == 10_000 {
                let text = "10,000 attempts and still something to do: some job keeps coming back";
                return Err(StoreError::Backend(text.into()).into());
            }
            let (id, job_type, token) = (claimed.id(), claimed.job_type.clone(), claimed.token);
            let context = Context::new(claimed, Instant::now(), Arc::clone(&shop.desk), Arc::clone(&shop.states));
            let (outcome, _) = execute(&shop.stack, &context, &shop.options, &shop.counters).await;
            report::write(&*shop.source, &context).await?;
            let Some(outcome) = outcome else { continue };
            for told in shop.source.report(vec![OutcomeReport { token, outcome }]).await? {
                let state = told.map_err(|error| StoreError::Backend(error.into()))?;
                ran.push(Ran { id, job_type: job_type.clone(), state });
            }
        }
    }
}

/// The jobs of one kind that have not finished, newest first, at most a thousand: what `assert_enqueued!` looks at.
pub async fn enqueued<J: Job>(client: &Client) -> Vec<J> {
    let filter = JobFilter { job_type: Some(JobType::trusted(J::TYPE)), ..JobFilter::default() };
    let store = client.store();
    let page = store.list_jobs(&filter, &PageRequest::first(1_000)).await.expect("the store lists its jobs");
    let mut jobs = Vec::new();
    for summary in page.items.into_iter().filter(|job| !job.state.is_terminal()) {
        if let Some(job) = store.job(summary.id).await.expect("the store gives its jobs") {
            jobs.push(job.payload.to().unwrap_or_else(|error| panic!("{} does not fit {}: {error}", job.id, J::TYPE)));
        }
    }
    jobs
}
