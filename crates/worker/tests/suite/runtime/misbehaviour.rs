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
    ProgressUpdate, Result, StoreError, Wakeups, WorkerInfo,
};
use orchestrix_worker::{Context, JobError, JobResult, JobSource, RunBlocking, StoreSource, Worker};
use serde::{Deserialize, Serialize};

use super::{Task, enqueue, fast_worker, gated_worker, job_record, memory_client, wait_for_state, wait_until};

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

/// Panics when it is displayed.
#[derive(Debug)]
struct PanickingError;

impl fmt::Display for PanickingError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("displayed")
    }
}

impl std::error::Error for PanickingError {}

#[tokio::test]
async fn a_panic_in_a_drop_or_an_error_fails_the_attempt_and_the_slot_keeps_working() {
    let client = memory_client();
    let worker = fast_worker(&client).concurrency(1).handler(|task: Task, _| async move {
        match task.n {
            1 => Err(JobError::new(PanickingError)),
            2 => {
                let _bomb = Bomb;
                std::future::pending().await
            }
            n => Ok(n),
        }
    });
    let worker = worker.start().unwrap();
    let displayed = enqueue(&client, 1).await;
    wait_for_state(&client, displayed.id(), JobState::Retrying).await;
    let bomb = client.enqueue(Task { n: 2 }.request().timeout(Duration::from_millis(50))).await.unwrap();
    wait_for_state(&client, bomb.id(), JobState::Retrying).await;
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

/// The channels between the test and a blocking handler.
struct Channels {
    started: std::sync::Mutex<std::sync::mpsc::Sender<()>>,
    end: std::sync::Mutex<std::sync::mpsc::Receiver<()>>,
}

impl RunBlocking for Stubborn {
    fn run(self, ctx: Context) -> JobResult<u8> {
        let channels = ctx.state::<Channels>()?;
        ctx.block_on(ctx.save_checkpoint(&1))?;
        channels.started.lock().unwrap().send(())?;
        channels.end.lock().unwrap().recv()?;
        Ok(1)
    }
}

#[tokio::test]
async fn a_cancelled_blocking_handler_keeps_its_slot_and_its_job_until_it_returns() {
    let client = memory_client();
    let ((started, starts), (end, ends)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let channels = Channels { started: std::sync::Mutex::new(started), end: std::sync::Mutex::new(ends) };
    let grace = Duration::from_millis(50);
    let worker = fast_worker(&client).cancel_grace(grace).concurrency(1).state(channels).blocking_job::<Stubborn>();
    let worker = worker.start().unwrap();
    let first = client.enqueue(Stubborn).await.unwrap();
    let _starts = tokio::task::spawn_blocking(move || starts.recv().map(|()| starts)).await.unwrap().unwrap();
    let second = client.enqueue(Stubborn).await.unwrap();
    first.cancel().await.unwrap();
    // The grace period has passed many times. The handler still runs, so there is no outcome and its slot is not
    // reused.
    wait_until("the cancellation is requested", async || job_record(&client, first.id()).await.cancel_requested).await;
    tokio::time::sleep(10 * grace).await;
    assert_eq!(job_record(&client, first.id()).await.state, JobState::Running);
    assert_eq!(worker.stats().started, 1);
    end.send(()).unwrap();
    assert_eq!(first.wait().await.unwrap(), 1, "the handler had succeeded");
    end.send(()).unwrap();
    assert_eq!(second.wait().await.unwrap(), 1);
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn prefetched_jobs_that_wait_too_long_for_a_slot_are_released() {
    let client = memory_client();
    let (worker, gate) = gated_worker(&client);
    let worker = worker.concurrency(1).start().unwrap();
    // Short jobs make the worker prefetch.
    client.enqueue_many((0..300).map(|n| Task { n })).await.unwrap();
    for _ in 0..300 {
        gate.next_started().await;
        gate.let_pass(1);
    }
    wait_until("the short jobs are done", async || worker.stats().reported == 300).await;
    client.enqueue_many((0..300).map(|n| Task { n })).await.unwrap();
    gate.next_started().await;
    wait_until("only the running job is held", async || {
        let depths = client.store().queue_depths(&orchestrix_store::PageRequest::first(10)).await.unwrap().items;
        depths[0].counts.get(&JobState::Running) == Some(&1) && depths[0].counts[&JobState::Pending] == 299
    })
    .await;
    let job = client.store().list_jobs(&Default::default(), &orchestrix_store::PageRequest::first(1)).await.unwrap();
    assert_eq!(job.items[0].attempts, 0, "releasing costs no attempt");
    gate.let_pass(1_000);
    wait_until("all are done", async || {
        client.store().queue_depths(&orchestrix_store::PageRequest::first(10)).await.unwrap().items.is_empty()
    })
    .await;
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_handle_can_stop_a_worker_that_runs_until_a_signal() {
    let client = memory_client();
    let worker = fast_worker(&client).handler(|task: Task, _| async move { Ok(task.n) }).start().unwrap();
    let handle = worker.handle();
    let running = tokio::spawn(worker.run_until_signal());
    assert_eq!(enqueue(&client, 3).await.wait().await.unwrap(), 3);
    assert_eq!(handle.stats().started, 1);
    handle.stop();
    let drained = running.await.unwrap().unwrap().unwrap();
    assert_eq!((drained.released, drained.unreported), (0, 0));
}

/// A source that fails or panics the first few times that outcomes are reported.
struct FlakySource {
    inner: Arc<dyn JobSource>,
    failures: Arc<AtomicUsize>,
}

#[async_trait]
impl JobSource for FlakySource {
    async fn claim_jobs(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
        self.inner.claim_jobs(request).await
    }
    async fn extend_leases(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        self.inner.extend_leases(tokens).await
    }
    async fn finish_attempts(&self, items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>> {
        match self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)) {
            Ok(n) if n % 2 == 0 => panic!("a bug"),
            Ok(_) => Err(StoreError::Backend("the password was changed".into())),
            Err(_) => self.inner.finish_attempts(items).await,
        }
    }
    async fn record_progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        self.inner.record_progress(token, update).await
    }
    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
        self.inner.append_logs(token, lines).await
    }
    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        self.inner.enqueue_jobs(jobs).await
    }
    async fn register_worker(&self, worker: &WorkerInfo) -> Result<()> {
        self.inner.register_worker(worker).await
    }
    async fn heartbeat_worker(&self, worker: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
        self.inner.heartbeat_worker(worker, presence).await
    }
    async fn remove_worker(&self, worker: &WorkerInfo) -> Result<()> {
        self.inner.remove_worker(worker).await
    }
    fn job_wakeups(&self) -> Wakeups {
        self.inner.job_wakeups()
    }
    fn dedicated_handle(&self) -> Result<Arc<dyn JobSource>> {
        let inner = self.inner.dedicated_handle()?;
        Ok(Arc::new(Self { inner, failures: Arc::clone(&self.failures) }))
    }
}

#[tokio::test]
async fn outcomes_survive_a_source_that_fails_or_panics() {
    let client: Client = memory_client();
    let failures = Arc::new(AtomicUsize::new(8));
    let inner = Arc::new(StoreSource::new(Arc::clone(client.store())));
    let source = FlakySource { inner, failures: Arc::clone(&failures) };
    let worker =
        Worker::with_source(Arc::new(source)).handler(|task: Task, _| async move { Ok(task.n) }).start().unwrap();
    let jobs = client.enqueue_many((0..20).map(|n| Task { n })).await.unwrap();
    for job in &jobs {
        job.wait().await.unwrap();
        assert_eq!(
            job_record(&client, job.id()).await.leases,
            1,
            "the job ran once and its outcome was reported until accepted"
        );
    }
    assert_eq!(failures.load(Ordering::SeqCst), 0, "every planned failure happened");
    let _ = worker.shutdown().await;
}
