//! `latency`: from the call that enqueues a job to the claim that returns it, on an idle queue.
//!
//! The worker waits for a hint, as a real one would, and polls beneath. It hears from the same store at once, and from
//! another process's through the database.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use orchestrix_core::{JobId, WorkerName};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{ClaimRequest, Finish, Store, Verdict};
use tokio::sync::mpsc;

use crate::{arguments::Scale, figure::Figure, jobs::job, progress::Progress, report::Row, server::Server};

const JOBS: usize = 300;
/// Longer than the pause between two notifications, so that the queue is idle each time.
const PAUSE: Duration = Duration::from_millis(50);
/// How often the worker looks if it hears nothing; a lost hint would show as a latency of this size.
const POLL: Duration = Duration::from_secs(1);

/// Measures a worker in the producer's process, then one in another.
pub(crate) async fn measure(server: &Server, scale: Scale, progress: &Progress) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, apart) in [("latency, same store", false), ("latency, other store", true)] {
        progress.step(name);
        let database = server.create_database().await?;
        let producer = PostgresStore::open(PostgresOptions::new(&database.url)).await?;
        let consumer =
            if apart { PostgresStore::open(PostgresOptions::new(&database.url)).await? } else { producer.clone() };
        let mut taken = latencies(&producer, consumer, scale.of(JOBS)).await?;
        drop(producer);
        server.drop_database(database).await?;
        taken.sort_unstable();
        let at = |share: f64| taken[((taken.len() - 1) as f64 * share) as usize].as_secs_f64() * 1_000.0;
        let shown = format!("p50 {:.1} ms, p99 {:.1} ms", at(0.5), at(0.99));
        progress.note(&format!("{name}: {shown}"));
        progress.done();
        rows.push(Row { figure: name.into(), ours: shown, ..Row::judged(Figure::Latency.target(), 0.0) });
    }
    Ok(rows)
}

async fn latencies(producer: &PostgresStore, consumer: PostgresStore, jobs: usize) -> Result<Vec<Duration>> {
    let (sender, mut claimed) = mpsc::channel(16);
    let worker = tokio::spawn(work(consumer, sender));
    let mut taken = Vec::with_capacity(jobs);
    // The first few open connections and make plans.
    for n in 0..jobs + 10 {
        tokio::time::sleep(PAUSE).await;
        let begun = Instant::now();
        let id = producer.enqueue(job(n)).await?.id;
        let (found, at): (JobId, Instant) = claimed.recv().await.context("the worker has stopped")?;
        anyhow::ensure!(found == id, "another job was claimed");
        if n >= 10 {
            taken.push(at.duration_since(begun));
        }
    }
    worker.abort();
    Ok(taken)
}

async fn work(store: PostgresStore, claimed: mpsc::Sender<(JobId, Instant)>) -> Result<()> {
    let request = ClaimRequest::any(WorkerName::trusted("bench-0"), 1);
    let mut wakeups = store.subscribe();
    loop {
        let jobs = store.claim(&request).await?;
        let now = Instant::now();
        for job in &jobs {
            claimed.send((job.id(), now)).await?;
            store.finish(vec![Finish { token: job.token, verdict: Verdict::DONE }]).await?;
        }
        if jobs.is_empty() {
            let _ = tokio::time::timeout(POLL, wakeups.next()).await;
        }
    }
}
