//! The worker runtime: its throughput compared with the store, the latency to the start of a handler, and memory.
//!
//! Jobs are the no-ops of `jobs`. They count as done when the store has no unfinished job left, not when handlers
//! return.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use orchestrix::{Client, Worker, WorkerBuilder};
use orchestrix_core::{NewJob, Queue};
use orchestrix_store::Store;
use tokio::sync::mpsc;

use crate::{
    arguments::Scale,
    backend::{self, Backend},
    drain::JOBS,
    figure::Figure,
    jobs::{JOB_TYPE, fill, job},
    measure::{DatabaseHost, Workload},
    memory,
    progress::Progress,
    report::Row,
};

/// Concurrent handlers; the prefetch beyond them adapts to the rate.
const CONCURRENCY: usize = 64;
/// Jobs in a queue of their own that run before the clock starts.
const WARM: usize = 20_000;
const WARM_QUEUE: &str = "warm";
/// The limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(120);

fn worker(client: &Client, queue: &str, run: &Arc<AtomicU64>) -> WorkerBuilder {
    let run = Arc::clone(run);
    Worker::builder(client).queue(queue).concurrency(CONCURRENCY).raw_handler(JOB_TYPE, move |_| {
        run.fetch_add(1, Ordering::Relaxed);
        async { Ok(None) }
    })
}

/// Runs all jobs of a queue.
async fn run_all(store: &Arc<dyn Store>, queue: &str, jobs: u64) -> Result<u64> {
    let client = Client::shared(Arc::clone(store));
    let run = Arc::new(AtomicU64::new(0));
    let worker = worker(&client, queue, &run).start()?;
    let begun = Instant::now();
    loop {
        if run.load(Ordering::Relaxed) >= jobs {
            let left = store.queue_depth(&Queue::new(queue)?).await?;
            if left.is_none_or(|depth| depth.counts.is_empty()) {
                break;
            }
        }
        ensure!(begun.elapsed() < TIMEOUT, "timed out before all jobs had run");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // No job is left to drain, and the shutdown is not timed.
    drop(worker);
    Ok(jobs)
}

/// A worker and its number of jobs.
#[derive(Debug)]
pub(crate) struct Run(u64);

pub(crate) fn ours(scale: Scale) -> Run {
    Run(scale.of(JOBS) as u64)
}

impl Workload for Run {
    type Session = Arc<dyn Store>;

    async fn prepare(&self, url: &str) -> Result<()> {
        let store = backend::open(url).await?;
        let warm = |n| NewJob { queue: Queue::trusted(WARM_QUEUE), ..job(n) };
        for chunk in (0..WARM).collect::<Vec<_>>().chunks(5_000) {
            store.enqueue_jobs(chunk.iter().map(|n| warm(*n)).collect()).await?;
        }
        fill(&store, usize::try_from(self.0)?).await
    }

    async fn open(&self, url: &str) -> Result<Arc<dyn Store>> {
        backend::open(url).await
    }

    async fn warm(&self, store: &mut Arc<dyn Store>) -> Result<u64> {
        run_all(store, WARM_QUEUE, WARM as u64).await
    }

    async fn run(&self, store: &mut Arc<dyn Store>) -> Result<u64> {
        run_all(store, "default", self.0).await
    }
}

/// From the call that enqueues a job to the start of its handler, on an idle queue, within one process.
pub(crate) async fn start<P: DatabaseHost>(host: &P, scale: Scale, progress: &Progress) -> Result<Row> {
    const STARTS: usize = 300;
    progress.step("start");
    let database = host.create_database().await?;
    let store = backend::open(&database.url).await?;
    let (sender, mut started) = mpsc::unbounded_channel();
    let client = Client::shared(Arc::clone(&store));
    let worker = Worker::builder(&client).raw_handler(JOB_TYPE, move |_| {
        let sent = sender.send(Instant::now());
        async move { Ok(sent.map(|()| None)?) }
    });
    let worker = worker.start()?;
    let mut took = Vec::new();
    for n in 0..scale.of(STARTS) + 10 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let begun = Instant::now();
        store.enqueue_job(job(n)).await?;
        let at = tokio::time::timeout(TIMEOUT, started.recv()).await?.context("the worker has stopped")?;
        if n >= 10 {
            took.push(at.saturating_duration_since(begun));
        }
    }
    let _ = worker.shutdown().await;
    drop((client, store));
    host.drop_database(database).await?;
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1_000.0;
    let shown = format!("p50 {:.1} ms, p99 {:.1} ms", at(0.5), at(0.99));
    progress.note(&format!("start: {shown}"));
    progress.done();
    Ok(Row {
        figure: Figure::Start.name().into(),
        ours: shown,
        ..Row::with_target(Figure::Start.target(P::BACKEND), 0.0)
    })
}

/// The peak memory of a process whose worker runs a hundred thousand jobs.
pub(crate) async fn footprint<P: DatabaseHost>(host: &P, scale: Scale, progress: &Progress) -> Result<Row> {
    memory::of_process(host, Figure::Footprint, "work-alone", scale.of(JOBS), scale.of(JOBS), progress).await
}

/// The body of the child process.
pub(crate) async fn work_alone(url: &str, jobs: usize) -> Result<()> {
    let store = backend::open(url).await?;
    run_all(&store, "default", jobs as u64).await?;
    println!("{}", memory::peak_bytes()?);
    Ok(())
}

/// The limit of the worker: the store alone.
pub(crate) fn limit(backend: Backend, scale: Scale) -> crate::drain_scenarios::DrainScenario {
    crate::drain_scenarios::empty(backend, scale)
}
