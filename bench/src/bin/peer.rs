//! An adapter that compares Orchestrix with other job queues: `setup`, `enqueue`, `work`, `latency` and `left`, each
//! with a count and options in JSON, on the database in `$BENCH_DB` or `$BENCH_SQLITE`. It uses the public API only.

use std::{
    env, io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use orchestrix::{
    Client, Context, Job, JobResult, PageRequest, PostgresOptions, PostgresStore, Run, SqliteOptions, SqliteStore,
    Worker,
};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

#[derive(Serialize, Deserialize, Job)]
#[job(type = "noop")]
struct Noop {
    id: u64,
}

static RUN: AtomicU64 = AtomicU64::new(0);
static STARTED: OnceLock<mpsc::UnboundedSender<Instant>> = OnceLock::new();

impl Run for Noop {
    async fn run(self, _: Context) -> JobResult {
        RUN.fetch_add(1, Ordering::Relaxed);
        if let Some(started) = STARTED.get() {
            started.send(Instant::now())?;
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(default)]
struct Options {
    mode: String,
    bulk: u64,
    #[serde(rename = "lanes")]
    callers: Option<u64>,
    #[serde(rename = "conc")]
    concurrency: usize,
    prefetch: Option<usize>,
    pool: usize,
    store: String,
}

impl Default for Options {
    fn default() -> Self {
        let mode = String::new();
        let store = env::var("PEER_STORE").unwrap_or_else(|_| "postgres".into());
        Self { mode, bulk: 1_000, callers: None, concurrency: 64, prefetch: None, pool: 10, store }
    }
}

async fn open(options: &Options) -> anyhow::Result<Client> {
    if options.store == "sqlite" {
        let path = env::var("BENCH_SQLITE").context("BENCH_SQLITE must name the file")?;
        return Ok(Client::new(SqliteStore::open(SqliteOptions::new(path)).await?));
    }
    let url = env::var("BENCH_DB").context("BENCH_DB must be the URL of the database")?;
    // `left` runs often, as a separate process: one connection is enough.
    let counts_only = env::args().nth(1).as_deref() == Some("left");
    let settings = PostgresOptions {
        connections: if counts_only { 1 } else { options.pool },
        listen: !counts_only,
        migrate: !counts_only,
        ..PostgresOptions::new(url)
    };
    Ok(Client::new(PostgresStore::open(settings).await?))
}

fn worker(client: &Client, options: &Options) -> orchestrix::WorkerBuilder {
    let worker = Worker::builder(client).concurrency(options.concurrency).job::<Noop>();
    match options.prefetch {
        Some(jobs) => worker.prefetch(jobs),
        None => worker,
    }
}

/// Enqueues with concurrent callers, each for the next part of `0..n`.
async fn enqueue(client: Client, n: u64, options: &Options) -> anyhow::Result<()> {
    let bulk = options.mode == "bulk";
    let piece = if bulk { options.bulk } else { 1 };
    let next = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let callers = (0..options.callers.unwrap_or(if bulk { 2 } else { 32 })).map(|_| {
        let (client, next) = (client.clone(), Arc::clone(&next));
        tokio::spawn(async move {
            loop {
                let from = next.fetch_add(piece, Ordering::Relaxed);
                match from {
                    from if from >= n => return Ok(()),
                    id if !bulk => drop(client.enqueue(Noop { id }).await?),
                    from => drop(client.enqueue_many((from..n.min(from + piece)).map(|id| Noop { id })).await?),
                }
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await?.map_err(|error: orchestrix::ClientError| error)?;
    }
    let secs = begun.elapsed().as_secs_f64();
    println!("{}", serde_json::json!({ "secs": secs, "rate": n as f64 / secs }));
    Ok(())
}

/// Prints READY, waits for a line, works, and prints the number of finished handlers every 10 ms.
async fn work(client: Client, options: &Options) -> anyhow::Result<()> {
    println!("READY");
    tokio::task::spawn_blocking(|| io::stdin().read_line(&mut String::new())).await??;
    thread::spawn(|| {
        let mut printed = u64::MAX;
        loop {
            let run = RUN.load(Ordering::Relaxed);
            if run != printed {
                println!("C {run}");
                printed = run;
            }
            thread::sleep(Duration::from_millis(10));
        }
    });
    worker(&client, options).run().await?;
    Ok(())
}

/// Milliseconds from the call of enqueue to the start of the handler, one job at a time on an idle queue.
async fn latency(client: Client, n: u64, options: &Options) -> anyhow::Result<()> {
    let (sender, mut started) = mpsc::unbounded_channel();
    if STARTED.set(sender).is_err() {
        bail!("latency was already measured");
    }
    let worker = worker(&client, options).start()?;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let mut took = Vec::new();
    for id in 0..n {
        let begun = Instant::now();
        client.enqueue(Noop { id }).await?;
        let at =
            tokio::time::timeout(Duration::from_secs(70), started.recv()).await.context("a job was not started")?;
        took.push(at.context("the worker has stopped")?.saturating_duration_since(begun).as_secs_f64() * 1e3);
        tokio::time::sleep(Duration::from_millis(5 + (id * 7_919) % 20)).await;
    }
    let mut took = took.split_off(10.min(took.len()));
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took[((took.len() as f64 * share) as usize).min(took.len() - 1)];
    let (p50, p90, p99, max) = (at(0.5), at(0.9), at(0.99), at(1.0));
    println!("{}", serde_json::json!({ "n": took.len(), "p50": p50, "p90": p90, "p99": p99, "max": max }));
    let _ = worker.shutdown().await;
    Ok(())
}

/// Prints the number of unfinished jobs.
async fn left(client: &Client) -> anyhow::Result<()> {
    let depths = client.store().queue_depths(&PageRequest::first(1_000)).await?.items;
    let left: u64 = depths.iter().flat_map(|queue| queue.counts.values()).sum();
    println!("{}", serde_json::json!({ "left": left }));
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = env::args().skip(1);
    let operation = arguments.next().context("an operation is required: setup, enqueue, work, latency or left")?;
    let n = arguments.next().map_or(Ok(0), |n| n.parse())?;
    let options: Options = serde_json::from_str(arguments.next().as_deref().unwrap_or("{}"))?;
    let client = open(&options).await?;
    match operation.as_str() {
        "setup" => Ok(()),
        "enqueue" => enqueue(client, n, &options).await,
        "work" => work(client, &options).await,
        "latency" => latency(client, n, &options).await,
        "left" => left(&client).await,
        other => bail!("unknown operation {other}: use setup, enqueue, work, latency or left"),
    }
}
