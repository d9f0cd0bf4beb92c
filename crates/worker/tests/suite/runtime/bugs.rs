//! Handlers and sources that misbehave.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use orchestrix_client::{Client, Job};
use orchestrix_core::{JobState, LeaseToken, NewJob, WorkerName};
use orchestrix_store::{
    ClaimRequest, ClaimedJob, Directive, Enqueued, FinishError, LeaseStatus, LogLine, OutcomeReport, Presence,
    ProgressUpdate, Result, Store, StoreError, Wakeups, WorkerInfo,
};
use orchestrix_worker::{Context, JobError, JobResult, JobSource, RunBlocking, StoreSource, Worker};
use serde::{Deserialize, Serialize};

use super::{Task, brisk, enqueue, gated, memory, reaches, record, until};

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

/// Panics when it is shown.
#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("unspeakable")
    }
}

impl std::error::Error for Unspeakable {}

#[tokio::test]
async fn what_panics_outside_of_a_handler_is_its_failure_too_and_the_slot_works_on() {
    let client = memory();
    let worker = brisk(&client).concurrency(1).handler(|task: Task, _| async move {
        match task.n {
            1 => Err(JobError::new(Unspeakable)),
            2 => {
                let _bomb = Bomb;
                std::future::pending().await
            }
            n => Ok(n),
        }
    });
    let worker = worker.start().unwrap();
    let unspeakable = enqueue(&client, 1).await;
    reaches(&client, unspeakable.id(), JobState::Retrying).await;
    let bomb = client.enqueue(Task { n: 2 }.request().timeout(Duration::from_millis(50))).await.unwrap();
    reaches(&client, bomb.id(), JobState::Retrying).await;
    assert_eq!(enqueue(&client, 7).await.wait().await.unwrap(), 7);
    assert_eq!(worker.stats().panicked, 2);
    let _ = worker.shutdown().await;
}

#[derive(Serialize, Deserialize)]
struct Stubborn;

impl Job for Stubborn {
    type Output = u8;
    const TYPE: &'static str = "stubborn";
}

/// What the test and a blocking handler say to each other.
struct Line {
    begun: std::sync::Mutex<std::sync::mpsc::Sender<()>>,
    end: std::sync::Mutex<std::sync::mpsc::Receiver<()>>,
}

impl RunBlocking for Stubborn {
    fn run(self, ctx: Context) -> JobResult<u8> {
        let line = ctx.state::<Line>()?;
        ctx.block_on(ctx.save_checkpoint(&1))?;
        line.begun.lock().unwrap().send(())?;
        line.end.lock().unwrap().recv()?;
        Ok(1)
    }
}

#[tokio::test]
async fn a_blocking_handler_that_is_cancelled_keeps_its_slot_and_its_job_until_it_returns() {
    let client = memory();
    let ((begun, begins), (end, ends)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let line = Line { begun: std::sync::Mutex::new(begun), end: std::sync::Mutex::new(ends) };
    let grace = Duration::from_millis(50);
    let worker = brisk(&client).cancel_grace(grace).concurrency(1).state(line).blocking_job::<Stubborn>();
    let worker = worker.start().unwrap();
    let first = client.enqueue(Stubborn).await.unwrap();
    let _begins = tokio::task::spawn_blocking(move || begins.recv().map(|()| begins)).await.unwrap().unwrap();
    let second = client.enqueue(Stubborn).await.unwrap();
    first.cancel().await.unwrap();
    // Its grace has passed several times over; it still runs, so nobody was told anything and nothing else was begun.
    until("it was asked to stop", async || record(&client, first.id()).await.cancel_requested).await;
    tokio::time::sleep(10 * grace).await;
    assert_eq!(record(&client, first.id()).await.state, JobState::Running);
    assert_eq!(worker.stats().started, 1);
    end.send(()).unwrap();
    assert_eq!(first.wait().await.unwrap(), 1, "it had done its work");
    end.send(()).unwrap();
    assert_eq!(second.wait().await.unwrap(), 1);
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn jobs_that_wait_too_long_for_a_slot_are_handed_back_to_others() {
    let client = memory();
    let (worker, keeper) = gated(&client);
    let worker = worker.concurrency(1).start().unwrap();
    // Quick ones let the worker hold some ready.
    client.enqueue_many((0..300).map(|n| Task { n })).await.unwrap();
    for _ in 0..300 {
        keeper.next().await;
        keeper.let_through(1);
    }
    until("the quick ones are done", async || worker.stats().reported == 300).await;
    client.enqueue_many((0..300).map(|n| Task { n })).await.unwrap();
    keeper.next().await;
    until("only the one that runs is kept", async || {
        let depths = client.store().queue_depths(&orchestrix_store::PageRequest::first(10)).await.unwrap().items;
        depths[0].counts.get(&JobState::Running) == Some(&1) && depths[0].counts[&JobState::Pending] == 299
    })
    .await;
    let job = client.store().list_jobs(&Default::default(), &orchestrix_store::PageRequest::first(1)).await.unwrap();
    assert_eq!(job.items[0].attempts, 0, "and that cost nothing");
    keeper.let_through(1_000);
    until("all are done", async || {
        client.store().queue_depths(&orchestrix_store::PageRequest::first(10)).await.unwrap().items.is_empty()
    })
    .await;
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_handle_ends_a_worker_from_elsewhere() {
    let client = memory();
    let worker = brisk(&client).handler(|task: Task, _| async move { Ok(task.n) }).start().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run_until_signal());
    assert_eq!(enqueue(&client, 3).await.wait().await.unwrap(), 3);
    assert_eq!(handle.stats().started, 1);
    handle.stop();
    let drained = running.await.unwrap().unwrap().unwrap();
    assert_eq!((drained.released, drained.untold), (0, 0));
}

/// A source whose reports fail, or panic, a number of times.
struct Flaky {
    inner: StoreSource,
    failures: AtomicUsize,
}

#[async_trait]
impl JobSource for Flaky {
    async fn lease(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
        self.inner.lease(request).await
    }
    async fn extend(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        self.inner.extend(tokens).await
    }
    async fn report(&self, items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>> {
        match self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)) {
            Ok(n) if n % 2 == 0 => panic!("a bug"),
            Ok(_) => Err(StoreError::Backend("the password was changed".into())),
            Err(_) => self.inner.report(items).await,
        }
    }
    async fn progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        self.inner.progress(token, update).await
    }
    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
        self.inner.append_logs(token, lines).await
    }
    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        self.inner.enqueue(jobs).await
    }
    async fn register(&self, worker: &WorkerInfo) -> Result<()> {
        self.inner.register(worker).await
    }
    async fn show(&self, worker: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
        self.inner.show(worker, presence).await
    }
    async fn leave(&self, worker: &WorkerInfo) -> Result<()> {
        self.inner.leave(worker).await
    }
    fn wakeups(&self) -> Wakeups {
        self.inner.wakeups()
    }
    fn apart(&self) -> Result<Arc<dyn JobSource>> {
        self.inner.apart()
    }
    fn store(&self) -> Option<&Arc<dyn Store>> {
        self.inner.store()
    }
}

#[tokio::test]
async fn outcomes_survive_a_source_that_fails_in_other_ways_than_being_away() {
    let client: Client = memory();
    let source = Flaky { inner: StoreSource::new(Arc::clone(client.store())), failures: AtomicUsize::new(8) };
    let worker = Worker::over(Arc::new(source)).handler(|task: Task, _| async move { Ok(task.n) }).start().unwrap();
    let jobs = client.enqueue_many((0..20).map(|n| Task { n })).await.unwrap();
    for job in &jobs {
        job.wait().await.unwrap();
        assert_eq!(record(&client, job.id()).await.leases, 1, "run once, told until it was heard");
    }
    let _ = worker.shutdown().await;
}
