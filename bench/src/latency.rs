//! `latency`: from the call that enqueues a job to the claim that returns it, on an idle queue.
//!
//! The worker waits for a hint, as a real one would, and polls beneath. It hears from the same store at once, and from
//! another process's through the database, where the database carries hints.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use orchestrix_core::{JobId, WorkerName};
use orchestrix_store::{ClaimRequest, Outcome, OutcomeReport, Store};
use tokio::sync::mpsc;

use crate::{arguments::Scale, backend, figure::Figure, jobs::job, measure::Place, progress::Progress, report::Row};

const JOBS: usize = 300;
/// Longer than the pause between two notifications, so that the queue is idle each time.
const PAUSE: Duration = Duration::from_millis(50);
/// How often the worker looks if it hears nothing; a lost hint would show as a latency of this size.
const POLL: Duration = Duration::from_secs(1);

/// Measures a worker in the producer's process, or one that has opened a store of its own.
pub(crate) async fn measure<P: Place>(place: &P, apart: bool, scale: Scale, progress: &Progress) -> Result<Row> {
    let name = if apart { "latency, other store" } else { "latency, same store" };
    progress.step(name);
    let database = place.create_database().await?;
    let producer = backend::open(&database.url).await?;
    let consumer = if apart { backend::open(&database.url).await? } else { Arc::clone(&producer) };
    let mut taken = latencies(&producer, consumer, scale.of(JOBS)).await?;
    drop(producer);
    place.drop_database(database).await?;
    taken.sort_unstable();
    let at = |share: f64| taken[((taken.len() - 1) as f64 * share) as usize].as_secs_f64() * 1_000.0;
    let shown = format!("p50 {:.1} ms, p99 {:.1} ms", at(0.5), at(0.99));
    progress.note(&format!("{name}: {shown}"));
    progress.done();
    Ok(Row { figure: name.into(), ours: shown, ..Row::judged(Figure::Latency.target(P::BACKEND), 0.0) })
}

async fn latencies(producer: &Arc<dyn Store>, consumer: Arc<dyn Store>, jobs: usize) -> Result<Vec<Duration>> {
    let (sender, mut claimed) = mpsc::channel(16);
    let worker = tokio::spawn(work(consumer, sender));
    let mut taken = Vec::with_capacity(jobs);
    // The first few open connections and make plans.
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
            let _ = tokio::time::timeout(POLL, wakeups.next()).await;
        }
    }
}
