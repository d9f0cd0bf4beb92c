//! The runtime in one process, step by step: handlers wait at a gate, and the test lets them pass.

mod cancellation;
mod context;
mod drain;
mod fetch;
mod log_events;
mod middleware;
mod misbehaviour;
mod outage;
mod outcomes;

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

pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn memory_client() -> Client {
    Client::new(MemoryStore::new())
}

/// A worker with short intervals.
pub(crate) fn fast_worker(client: &Client) -> WorkerBuilder {
    Worker::builder(client)
        .heartbeat_interval(Duration::from_millis(50))
        .poll_interval(Duration::from_millis(50))
        .cancel_grace(Duration::from_millis(200))
        .drain_timeout(Duration::from_secs(5))
}

pub(crate) async fn job_record(client: &Client, id: JobId) -> Record {
    client.store().job(id).await.unwrap().unwrap()
}

/// Waits until the job is in this state.
pub(crate) async fn wait_for_state(client: &Client, id: JobId, state: JobState) -> Record {
    let reached = tokio::time::timeout(TIMEOUT, async {
        loop {
            let job = job_record(client, id).await;
            if job.state == state {
                return job;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    match reached.await {
        Ok(job) => job,
        Err(_) => panic!("the job did not become {state}: {:?}", job_record(client, id).await),
    }
}

/// Waits until `done` returns true.
pub(crate) async fn wait_until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(TIMEOUT, async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "timed out: {what}");
}

/// The handlers' side of a gate: a handler announces its start and waits until the test lets it pass.
#[derive(Clone)]
pub(crate) struct Gate {
    started: mpsc::UnboundedSender<(u64, Context)>,
    permits: Arc<tokio::sync::Semaphore>,
}

/// The test's side of a gate.
pub(crate) struct GateControl {
    started: Mutex<mpsc::UnboundedReceiver<(u64, Context)>>,
    permits: Arc<tokio::sync::Semaphore>,
}

pub(crate) fn gate() -> (Gate, GateControl) {
    let (started, received) = mpsc::unbounded_channel();
    let permits = Arc::new(tokio::sync::Semaphore::new(0));
    (Gate { started, permits: Arc::clone(&permits) }, GateControl { started: Mutex::new(received), permits })
}

impl Gate {
    /// Announces that the handler has started, and waits.
    pub(crate) async fn pass(&self, n: u64, ctx: &Context) -> JobResult<u64> {
        self.started.send((n, ctx.clone()))?;
        self.permits.acquire().await?.forget();
        Ok(n)
    }
}

impl GateControl {
    /// Waits for the next handler to start.
    pub(crate) async fn next_started(&self) -> (u64, Context) {
        let next = tokio::time::timeout(TIMEOUT, async { self.started.lock().await.recv().await });
        next.await.expect("no handler started in time").expect("the worker dropped its handlers")
    }

    /// Whether no further handler has started.
    pub(crate) async fn none_started(&self) -> bool {
        self.started.lock().await.is_empty()
    }

    pub(crate) fn let_pass(&self, n: usize) {
        self.permits.add_permits(n);
    }
}

/// A worker whose handlers wait at a gate.
pub(crate) fn gated_worker(client: &Client) -> (WorkerBuilder, GateControl) {
    let (handler_gate, gate) = gate();
    let worker = fast_worker(client).handler(move |task: Task, ctx: Context| {
        let gate = handler_gate.clone();
        async move { gate.pass(task.n, &ctx).await }
    });
    (worker, gate)
}

pub(crate) async fn enqueue(client: &Client, n: u64) -> JobHandle<Task> {
    client.enqueue(Task { n }).await.unwrap()
}
