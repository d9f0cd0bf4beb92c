//! `latency`: from the call that enqueues a job to the claim that returns it, on an idle queue.
//!
//! The worker waits for a wake-up and also polls, like a real one. The same store wakes it directly; another store
//! wakes it through the database, if the database supports that.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use orchestrix_core::{JobId, WorkerName};
use orchestrix_store::{ClaimRequest, Outcome, OutcomeReport, Store};
use tokio::sync::mpsc;

use crate::{
    arguments::Scale, backend, figure::Figure, jobs::job, measure::DatabaseHost, progress::Progress, report::Row,
};

const JOBS: usize = 300;
/// Longer than the pause between two notifications, so that the queue is idle each time.
const PAUSE: Duration = Duration::from_millis(50);
/// The worker's poll interval; a lost wake-up shows as a latency of this length.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Measures a worker in the producer's store, or in a store of its own.
pub(crate) async fn measure<P: DatabaseHost>(
    host: &P,
    separate_store: bool,
    scale: Scale,
    progress: &Progress,
) -> Result<Row> {
    let name = if separate_store { "latency, other store" } else { "latency, same store" };
    progress.step(name);
    let database = host.create_database().await?;
    let producer = backend::open(&database.url).await?;
    let consumer = if separate_store { backend::open(&database.url).await? } else { Arc::clone(&producer) };
    let mut taken = latencies(&producer, consumer, scale.of(JOBS)).await?;
    drop(producer);
    host.drop_database(database).await?;
    taken.sort_unstable();
    let at = |share: f64| taken[((taken.len() - 1) as f64 * share) as usize].as_secs_f64() * 1_000.0;
    let shown = format!("p50 {:.1} ms, p99 {:.1} ms", at(0.5), at(0.99));
    progress.note(&format!("{name}: {shown}"));
    progress.done();
    Ok(Row { figure: name.into(), ours: shown, ..Row::with_target(Figure::Latency.target(P::BACKEND), 0.0) })
}

async fn latencies(producer: &Arc<dyn Store>, consumer: Arc<dyn Store>, jobs: usize) -> Result<Vec<Duration>> {
    let (sender, mut claimed) = mpsc::channel(16);
    let worker = tokio::spawn(work(consumer, sender));
    let mut taken = Vec::with_capacity(jobs);
    // The first few open connections and prepare statements.
    for n in 0..jobs + 10 {
        tokio::time::sleep(PAUSE).await;
        let begun = Instant::now();
        let id = producer.enqueue_job(job(n)).await?.id;
        let (found, at): (JobId, Instant) = claimed.recv().await.context("the worker has stopped")?;
        anyhow::ensure!(found == id, "another job was claimed");
        if n >= 10 {
            taken.push(at.duration_since(begun));
        }
    }
    worker.abort();
    Ok(taken)
}

async fn work(store: Arc<dyn Store>, claimed: mpsc::Sender<(JobId, Instant)>) -> Result<()> {
    let request = ClaimRequest::any(WorkerName::trusted("bench-0"), 1);
    let mut wakeups = store.job_wakeups();
    loop {
        let jobs = store.claim_jobs(&request).await?;
        let now = Instant::now();
        for job in &jobs {
            claimed.send((job.id(), now)).await?;
            store.finish_attempts(vec![OutcomeReport { token: job.token, outcome: Outcome::DONE }]).await?;
        }
        if jobs.is_empty() {
            let _ = tokio::time::timeout(POLL_INTERVAL, wakeups.next()).await;
        }
    }
}
