//! Workers that wait at the server for jobs: what they are given, how they stop, and what is left when they vanish.

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
    ground::{Ground, on_both, until, worker},
};

/// Longer than any request takes that does not wait.
const AT_REST: Duration = Duration::from_millis(500);

/// What is known of requests for jobs.
#[derive(Default)]
struct Requests {
    asked: AtomicUsize,
    /// Since when each that is not answered yet is open.
    open: Mutex<Vec<(usize, Instant)>>,
}

struct Open(Arc<Requests>, usize);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.lock().unwrap().retain(|(n, _)| *n != self.1);
    }
}

impl Requests {
    fn waiting(&self) -> usize {
        self.open.lock().unwrap().iter().filter(|(_, since)| since.elapsed() > AT_REST).count()
    }
}

/// A second server on the same store, whose requests for jobs are watched.
async fn watched(ground: &Ground) -> (SocketAddr, Arc<Requests>) {
    let requests = Arc::new(Requests::default());
    let watch = Arc::clone(&requests);
    let routes = router(App::new(Arc::clone(ground.store()), ServerOptions::default())).layer(from_fn(
        move |request: Request, next: Next| {
            let watch = Arc::clone(&watch);
            async move {
                let open = (request.uri().path() == "/worker/leases").then(|| {
                    let n = watch.asked.fetch_add(1, Ordering::SeqCst);
                    watch.open.lock().unwrap().push((n, Instant::now()));
                    Open(watch, n)
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

on_both! {
    an_idle_worker_waits_at_the_server_and_a_drain_does_not_wait_for_it
    time_spent_waiting_is_not_taken_from_the_job
    slots_that_fall_free_are_filled_while_another_request_waits
    a_client_that_is_gone_leaves_no_job_leased
}

async fn an_idle_worker_waits_at_the_server_and_a_drain_does_not_wait_for_it(ground: Ground) {
    let (address, requests) = watched(&ground).await;
    let worker = worker(format!("http://{address}"));
    let worker = worker.handler(|task: Task, _: Context| async move { Ok(json!(task.n)) }).start().unwrap();
    until("it waits there", async || requests.waiting() == 1).await;
    assert!(requests.asked.load(Ordering::SeqCst) <= 3, "once at first, and once to wait");
    let id = ground.enqueue(Task { n: 1 }).await;
    ground.reaches(id, JobState::Completed).await;
    until("it waits again", async || requests.waiting() == 1).await;
    assert!(requests.asked.load(Ordering::SeqCst) <= 6, "{:?}", requests.asked);
    let begun = Instant::now();
    assert_eq!(worker.shutdown().await.untold, 0);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    until("the server noticed", async || requests.waiting() == 0).await;
    ground.end().await;
}

async fn time_spent_waiting_is_not_taken_from_the_job(ground: Ground) {
    let worker = ground.worker().handler(|task: Task, ctx: Context| async move {
        tokio::task::yield_now().await;
        let left = ctx.deadline().unwrap().saturating_duration_since(Instant::now());
        let answer: JobResult<Value> = Ok(json!({ "n": task.n, "left": left.as_secs_f64() }));
        answer
    });
    let worker = worker.start().unwrap();
    // It waits for the job longer than the job may take.
    let request = Task { n: 1 }.request().delay(Duration::from_secs(4)).timeout(Duration::from_secs(3));
    let id = ground.enqueue(request.max_attempts(1)).await;
    let job = ground.reaches(id, JobState::Completed).await;
    assert_eq!(job.leases, 1, "it was begun when it was given");
    let left: Value = job.result.unwrap().to().unwrap();
    assert!(left["left"].as_f64().unwrap() > 0.5, "{left}");
    let _ = worker.shutdown().await;
    ground.end().await;
}

async fn slots_that_fall_free_are_filled_while_another_request_waits(ground: Ground) {
    let (address, requests) = watched(&ground).await;
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
        ground.enqueue(Task { n }).await;
    }
    until("two run", async || worker.running() == 2).await;
    until("it waits for one more", async || requests.waiting() == 1).await;
    gate.add_permits(2);
    until("three slots are free", async || worker.running() == 0).await;
    let begun = Instant::now();
    for n in 2..5 {
        ground.enqueue(Task { n }).await;
    }
    until("all three run", async || worker.running() == 3).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    gate.add_permits(3);
    until("they end", async || worker.running() == 0).await;
    let _ = worker.shutdown().await;
    ground.end().await;
}

async fn a_client_that_is_gone_leaves_no_job_leased(ground: Ground) {
    let (address, requests) = watched(&ground).await;
    let mut sockets = Vec::new();
    for n in 0..5 {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let body = json!({ "workerId": format!("gone-{n}"), "max": 10, "waitSeconds": 60 }).to_string();
        let head =
            "POST /worker/leases HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length:";
        socket.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
        sockets.push(socket);
    }
    until("all wait", async || requests.waiting() == 5).await;
    drop(sockets);
    let id = ground.enqueue(Task { n: 1 }.request().queue("q")).await;
    until("the server noticed", async || requests.waiting() == 0).await;
    // Sooner than any lease ends.
    let claim = ClaimRequest { queues: Queues::All, ..ClaimRequest::any(WorkerName::new("hand").unwrap(), 1) };
    let begun = Instant::now();
    until("the job can be had", async || {
        let claimed = ground.store().claim_jobs(&claim).await.unwrap();
        claimed.first().is_some_and(|job| job.id() == id && job.attempt == 1)
    })
    .await;
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(ground.store().list_workers(&PageRequest::first(10)).await.unwrap().items.len(), 5);
    ground.end().await;
}
