//! The runtime in one process, step by step: handlers say where they are, tests say when they go on.

mod away;
mod bugs;
mod drain;
mod ends;
mod fetch;
mod lines;
mod middleware;
mod says;
mod stop;

use std::{sync::Arc, time::Duration};

use orchestrix_client::{Client, Job, JobHandle};
use orchestrix_core::{Job as Record, JobId, JobState};
use orchestrix_memory::MemoryStore;
use orchestrix_worker::{Context, JobResult, Worker, WorkerBuilder};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, mpsc};

/// A job whose handler the test provides.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) n: u64,
}

impl Job for Task {
    type Output = u64;
    const TYPE: &'static str = "task";
}

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn memory() -> Client {
    Client::new(MemoryStore::new())
}

/// A worker that notices quickly.
pub(crate) fn brisk(client: &Client) -> WorkerBuilder {
    Worker::builder(client)
        .heartbeat_interval(Duration::from_millis(50))
        .poll_interval(Duration::from_millis(50))
        .cancel_grace(Duration::from_millis(200))
        .drain_timeout(Duration::from_secs(5))
}

pub(crate) async fn record(client: &Client, id: JobId) -> Record {
    client.store().job(id).await.unwrap().unwrap()
}

/// Waits until the job is in this state.
pub(crate) async fn reaches(client: &Client, id: JobId, state: JobState) -> Record {
    let looked = tokio::time::timeout(PATIENCE, async {
        loop {
            let job = record(client, id).await;
            if job.state == state {
                return job;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    match looked.await {
        Ok(job) => job,
        Err(_) => panic!("not {state} but {:?}", record(client, id).await),
    }
}

/// Waits until `done` says so.
pub(crate) async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let looked = tokio::time::timeout(PATIENCE, async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(looked.await.is_ok(), "never: {what}");
}

/// A gate between a test and its handlers: each tells that it has begun and waits to be let through.
#[derive(Clone)]
pub(crate) struct Gate {
    begun: mpsc::UnboundedSender<(u64, Context)>,
    through: Arc<tokio::sync::Semaphore>,
}

pub(crate) struct Keeper {
    begun: Mutex<mpsc::UnboundedReceiver<(u64, Context)>>,
    through: Arc<tokio::sync::Semaphore>,
}

pub(crate) fn gate() -> (Gate, Keeper) {
    let (begun, received) = mpsc::unbounded_channel();
    let through = Arc::new(tokio::sync::Semaphore::new(0));
    (Gate { begun, through: Arc::clone(&through) }, Keeper { begun: Mutex::new(received), through })
}

impl Gate {
    /// Tells that the handler has begun, and waits.
    pub(crate) async fn pass(&self, n: u64, ctx: &Context) -> JobResult<u64> {
        self.begun.send((n, ctx.clone()))?;
        self.through.acquire().await?.forget();
        Ok(n)
    }
}

impl Keeper {
    /// The next handler that begins.
    pub(crate) async fn next(&self) -> (u64, Context) {
        let next = tokio::time::timeout(PATIENCE, async { self.begun.lock().await.recv().await });
        next.await.expect("a handler begins").expect("the gate is open")
    }

    /// Whether another handler has begun already.
    pub(crate) async fn nobody(&self) -> bool {
        self.begun.lock().await.is_empty()
    }

    pub(crate) fn let_through(&self, n: usize) {
        self.through.add_permits(n);
    }
}

/// A worker of gated tasks.
pub(crate) fn gated(client: &Client) -> (WorkerBuilder, Keeper) {
    let (gate, keeper) = gate();
    let worker = brisk(client).handler(move |task: Task, ctx: Context| {
        let gate = gate.clone();
        async move { gate.pass(task.n, &ctx).await }
    });
    (worker, keeper)
}

pub(crate) async fn enqueue(client: &Client, n: u64) -> JobHandle<Task> {
    client.enqueue(Task { n }).await.unwrap()
}
