//! Long polls of workers: what they receive, how they end, and what happens when a worker disappears.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    extract::Request,
    middleware::{Next, from_fn},
    response::Response,
};
use orchestrix_client::Job;
use orchestrix_core::{JobState, WorkerName};
use orchestrix_server::{App, ServerOptions, router};
use orchestrix_store::{ClaimRequest, PageRequest, Queues};
use orchestrix_worker::{Context, JobResult};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpListener, net::TcpStream};

use super::{
    Task,
    test_cluster::{TestCluster, on_both_databases, wait_until, worker},
};

/// Longer than a request takes that does not wait.
const WAITING_AFTER: Duration = Duration::from_millis(500);

/// The lease requests that a server received.
#[derive(Default)]
struct LeaseRequests {
    count: AtomicUsize,
    /// When each open request arrived.
    open: Mutex<Vec<(usize, Instant)>>,
}

struct OpenRequest(Arc<LeaseRequests>, usize);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.open.lock().unwrap().retain(|(n, _)| *n != self.1);
    }
}

impl LeaseRequests {
    fn waiting(&self) -> usize {
        self.open.lock().unwrap().iter().filter(|(_, since)| since.elapsed() > WAITING_AFTER).count()
    }
}

/// Starts a second server on the same store and records its lease requests.
async fn start_recording_server(cluster: &TestCluster) -> (SocketAddr, Arc<LeaseRequests>) {
    let requests = Arc::new(LeaseRequests::default());
    let watch = Arc::clone(&requests);
    let routes = router(App::new(Arc::clone(cluster.store()), ServerOptions::default())).layer(from_fn(
        move |request: Request, next: Next| {
            let watch = Arc::clone(&watch);
            async move {
                let open = (request.uri().path() == "/worker/leases").then(|| {
                    let n = watch.count.fetch_add(1, Ordering::SeqCst);
                    watch.open.lock().unwrap().push((n, Instant::now()));
                    OpenRequest(watch, n)
                });
                let response: Response = next.run(request).await;
                drop(open);
                response
            }
        },
    ));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    (address, requests)
}

on_both_databases! {
    an_idle_worker_long_polls_and_shuts_down_without_waiting_for_the_poll
    time_spent_in_a_long_poll_does_not_count_against_the_job
    freed_slots_are_filled_while_another_long_poll_waits
    a_disconnected_client_leaves_no_job_leased
}

async fn an_idle_worker_long_polls_and_shuts_down_without_waiting_for_the_poll(cluster: TestCluster) {
    let (address, requests) = start_recording_server(&cluster).await;
    let worker = worker(format!("http://{address}"));
    let worker = worker.handler(|task: Task, _: Context| async move { Ok(json!(task.n)) }).start().unwrap();
    wait_until("the worker long-polls", async || requests.waiting() == 1).await;
    assert!(requests.count.load(Ordering::SeqCst) <= 3, "one request at the start, and one long poll");
    let id = cluster.enqueue(Task { n: 1 }).await;
    cluster.wait_for_state(id, JobState::Completed).await;
    wait_until("the worker long-polls again", async || requests.waiting() == 1).await;
    assert!(requests.count.load(Ordering::SeqCst) <= 6, "{:?}", requests.count);
    let started = Instant::now();
    assert_eq!(worker.shutdown().await.unreported, 0);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    wait_until("the server noticed the disconnect", async || requests.waiting() == 0).await;
    cluster.shutdown().await;
}

async fn time_spent_in_a_long_poll_does_not_count_against_the_job(cluster: TestCluster) {
    let worker = cluster.worker().handler(|task: Task, ctx: Context| async move {
        tokio::task::yield_now().await;
        let left = ctx.deadline().unwrap().saturating_duration_since(Instant::now());
        let answer: JobResult<Value> = Ok(json!({ "n": task.n, "left": left.as_secs_f64() }));
        answer
    });
    let worker = worker.start().unwrap();
    // The worker waits for the job longer than the timeout of the job.
    let request = Task { n: 1 }.request().delay(Duration::from_secs(4)).timeout(Duration::from_secs(3));
    let id = cluster.enqueue(request.max_attempts(1)).await;
    let job = cluster.wait_for_state(id, JobState::Completed).await;
    assert_eq!(job.leases, 1, "the first lease ran the job");
    let left: Value = job.result.unwrap().to().unwrap();
    assert!(left["left"].as_f64().unwrap() > 0.5, "{left}");
    let _ = worker.shutdown().await;
    cluster.shutdown().await;
}

async fn freed_slots_are_filled_while_another_long_poll_waits(cluster: TestCluster) {
    let (address, requests) = start_recording_server(&cluster).await;
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let worker = {
        let gate = Arc::clone(&gate);
        worker(format!("http://{address}")).concurrency(3).handler(move |task: Task, _: Context| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await?.forget();
                Ok(json!(task.n))
            }
        })
    };
    let worker = worker.start().unwrap();
    for n in 0..2 {
        cluster.enqueue(Task { n }).await;
    }
    wait_until("two jobs run", async || worker.running() == 2).await;
    wait_until("the worker long-polls for one more", async || requests.waiting() == 1).await;
    gate.add_permits(2);
    wait_until("three slots are free", async || worker.running() == 0).await;
    let started = Instant::now();
    for n in 2..5 {
        cluster.enqueue(Task { n }).await;
    }
    wait_until("all three run", async || worker.running() == 3).await;
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    gate.add_permits(3);
    wait_until("the jobs finish", async || worker.running() == 0).await;
    let _ = worker.shutdown().await;
    cluster.shutdown().await;
}

async fn a_disconnected_client_leaves_no_job_leased(cluster: TestCluster) {
    let (address, requests) = start_recording_server(&cluster).await;
    let mut sockets = Vec::new();
    for n in 0..5 {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let body = json!({ "workerId": format!("gone-{n}"), "max": 10, "waitSeconds": 60 }).to_string();
        let head =
            "POST /worker/leases HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length:";
        socket.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
        sockets.push(socket);
    }
    wait_until("all clients wait", async || requests.waiting() == 5).await;
    drop(sockets);
    let id = cluster.enqueue(Task { n: 1 }.request().queue("q")).await;
    wait_until("the server noticed the disconnect", async || requests.waiting() == 0).await;
    // Long before any lease expires.
    let claim = ClaimRequest { queues: Queues::All, ..ClaimRequest::any(WorkerName::new("hand").unwrap(), 1) };
    let started = Instant::now();
    wait_until("the job is claimable", async || {
        let claimed = cluster.store().claim_jobs(&claim).await.unwrap();
        claimed.first().is_some_and(|job| job.id() == id && job.attempt == 1)
    })
    .await;
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    assert_eq!(cluster.store().list_workers(&PageRequest::first(10)).await.unwrap().items.len(), 5);
    cluster.shutdown().await;
}
