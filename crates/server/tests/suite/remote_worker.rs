//! The Rust worker over the HTTP API.

mod long_poll;
pub(crate) mod test_cluster;

use std::{sync::Arc, time::Duration};

use orchestrix_client::Job;
use orchestrix_core::{JobState, Json, WorkerName};
use orchestrix_store::{ClaimRequest, FinishError, LogLevel, Outcome, OutcomeReport, PageRequest};
use orchestrix_worker::{Context, HttpOptions, HttpSource, JobError, JobSource, StopReason};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::{Semaphore, mpsc},
};

use self::test_cluster::{FAST_RETRY, TIMEOUT, TestCluster, on_both_databases, wait_until};

/// A job whose handler the test provides.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) n: u64,
}

impl Job for Task {
    type Output = Value;
    const TYPE: &'static str = "task";
}

on_both_databases! {
    jobs_complete_and_failures_are_retried
    progress_checkpoints_and_logs_reach_the_store
    a_cancellation_reaches_the_handler
    a_restart_of_the_server_costs_no_attempts
    an_unreadable_outcome_does_not_affect_the_others
}

async fn jobs_complete_and_failures_are_retried(cluster: TestCluster) {
    let worker = cluster.worker().handler(|task: Task, ctx: Context| async move {
        match task.n {
            0 => Err(JobError::fatal("never")),
            n if n % 10 == 0 && ctx.attempt() == 1 => Err(JobError::new("not yet")),
            1 => {
                let child = ctx.enqueue(Task { n: 1_001 }.request().idempotency_key("child")).await?;
                ctx.enqueue_all(vec![Task { n: 1_002 }.request().build()?, Task { n: 1_003 }.request().build()?])
                    .await?;
                Ok(json!({ "child": child.id.to_string() }))
            }
            n => Ok(json!(n)),
        }
    });
    let worker = worker.start().unwrap();
    let requests = (0..200).map(|n| Task { n }.request().retry(FAST_RETRY).tenant("acme"));
    let jobs = cluster.client.enqueue_many(requests.collect::<Vec<_>>()).await.unwrap();
    for (n, job) in jobs.iter().enumerate().skip(2) {
        let job = cluster.wait_for_state(job.id(), JobState::Completed).await;
        assert_eq!(job.result.unwrap().as_str(), n.to_string());
        assert_eq!(job.attempts, if n % 10 == 0 { 2 } else { 1 }, "{n}");
    }
    let dead = cluster.wait_for_state(jobs[0].id(), JobState::Dead).await;
    assert_eq!(dead.attempt_log[0].error.as_deref(), Some("never"));
    let parent = cluster.wait_for_state(jobs[1].id(), JobState::Completed).await;
    let child: Value = parent.result.unwrap().to().unwrap();
    let child = cluster.wait_for_state(child["child"].as_str().unwrap().parse().unwrap(), JobState::Completed).await;
    assert_eq!(child.tenant.as_str(), "acme", "a child inherits the tenant of its parent");
    wait_until("all outcomes are reported", async || worker.stats().reported == 200 + 19 + 3).await;
    let listed = cluster.store().list_workers(&PageRequest::first(10)).await.unwrap().items;
    assert_eq!((listed[0].info.name.as_str(), listed[0].info.concurrency), ("remote", 10));
    assert_eq!(listed[0].info.job_types.as_ref().unwrap()[0].as_str(), "task");
    assert_eq!(worker.shutdown().await.unreported, 0);
    assert!(cluster.store().list_workers(&PageRequest::first(10)).await.unwrap().items.is_empty(), "the worker left");
    cluster.shutdown().await;
}

async fn progress_checkpoints_and_logs_reach_the_store(cluster: TestCluster) {
    let (gate, started) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let worker = {
        let (gate, started) = (Arc::clone(&gate), Arc::clone(&started));
        cluster.worker().handler(move |_: Task, ctx: Context| {
            let (gate, started) = (Arc::clone(&gate), Arc::clone(&started));
            async move {
                if let Some(kept) = ctx.checkpoint::<u64>()? {
                    return Ok(json!(kept));
                }
                ctx.warn("began");
                ctx.progress_with(25.0, "a quarter");
                ctx.save_checkpoint(&7).await?;
                started.add_permits(1);
                gate.acquire().await?.forget();
                // As JSON, more than fits in one request.
                for _ in 0..60 {
                    ctx.info("\u{1}".repeat(15_000));
                }
                Err(JobError::new("once more"))
            }
        })
    };
    let worker = worker.start().unwrap();
    let id = cluster.enqueue(Task { n: 1 }.request().retry(FAST_RETRY)).await;
    started.acquire().await.unwrap().forget();
    assert_eq!(
        cluster.job(id).await.checkpoint.unwrap().as_str(),
        "7",
        "save_checkpoint returns once the checkpoint is durable"
    );
    let lines = async || cluster.store().job_logs(id, &PageRequest::first(1_000)).await.unwrap().items;
    wait_until("the first log line is stored while the job runs", async || lines().await.len() == 1).await;
    let progress = cluster.job(id).await.progress.unwrap();
    assert_eq!((progress.percent, progress.message.as_deref()), (Some(25.0), Some("a quarter")));
    gate.add_permits(1);
    let job = cluster.wait_for_state(id, JobState::Completed).await;
    assert_eq!((job.result.unwrap().as_str(), job.attempts), ("7", 2));
    let lines = lines().await;
    assert_eq!((lines.len(), lines[0].level, lines[0].message.as_str()), (61, LogLevel::Warn, "began"));
    let _ = worker.shutdown().await;
    cluster.shutdown().await;
}

async fn a_cancellation_reaches_the_handler(cluster: TestCluster) {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let worker = cluster.worker().handler(move |_: Task, ctx: Context| {
        let sender = sender.clone();
        async move {
            ctx.cancelled().await;
            sender.send(ctx.stop_reason())?;
            Err(JobError::new("stopped"))
        }
    });
    let worker = worker.start().unwrap();
    let id = cluster.enqueue(Task { n: 1 }).await;
    cluster.wait_for_state(id, JobState::Running).await;
    cluster.store().cancel_job(id).await.unwrap();
    let reason =
        tokio::time::timeout(TIMEOUT, receiver.recv()).await.expect("the handler sees the cancellation").unwrap();
    assert_eq!(reason, Some(StopReason::Cancelled));
    cluster.wait_for_state(id, JobState::Cancelled).await;
    let _ = worker.shutdown().await;
    cluster.shutdown().await;
}

async fn a_restart_of_the_server_costs_no_attempts(mut cluster: TestCluster) {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let worker = {
        let gate = Arc::clone(&gate);
        cluster.worker().concurrency(4).handler(move |task: Task, ctx: Context| {
            let (gate, sender) = (Arc::clone(&gate), sender.clone());
            async move {
                ctx.info("began");
                sender.send(task.n)?;
                gate.acquire().await?.forget();
                ctx.info("ends");
                Ok(json!(task.n))
            }
        })
    };
    let worker = worker.start().unwrap();
    let mut jobs = Vec::new();
    for n in 0..12 {
        jobs.push(cluster.enqueue(Task { n }).await);
    }
    for _ in 0..4 {
        tokio::time::timeout(TIMEOUT, receiver.recv()).await.expect("handlers start").unwrap();
    }
    cluster.stop_server().await;
    gate.add_permits(4);
    wait_until("handlers finish while the server is down", async || worker.running() == 0).await;
    assert_eq!(worker.stats().reported, 0);
    cluster.start_server().await;
    gate.add_permits(8);
    for (n, id) in jobs.into_iter().enumerate() {
        let job = cluster.wait_for_state(id, JobState::Completed).await;
        assert_eq!((job.attempts, job.losses, job.leases), (1, 0, 1), "{n} ran once: {job:?}");
        let lines = cluster.store().job_logs(id, &PageRequest::first(10)).await.unwrap().items;
        assert_eq!(lines.iter().map(|line| line.message.as_str()).collect::<Vec<_>>(), ["began", "ends"]);
    }
    let stats = worker.stats();
    assert_eq!((stats.leases_lost, stats.stale_rejected), (0, 0), "{stats:?}");
    assert_eq!(worker.shutdown().await.unreported, 0);
    cluster.shutdown().await;
}

async fn an_unreadable_outcome_does_not_affect_the_others(cluster: TestCluster) {
    let source = HttpSource::new(HttpOptions::new(cluster.url())).unwrap();
    for n in 0..9 {
        cluster.enqueue(Task { n }).await;
    }
    let jobs = source.claim_jobs(&ClaimRequest::any(WorkerName::new("hand").unwrap(), 9)).await.unwrap();
    let nested = |depth: usize| Json::trusted(&format!("{}1{}", "[".repeat(depth), "]".repeat(depth)));
    let outcome = |n: usize| Outcome::Complete { result: Some(nested(if n == 3 { 200 } else { 2 })) };
    let mut items: Vec<OutcomeReport> =
        jobs.iter().enumerate().map(|(n, job)| OutcomeReport { token: job.token, outcome: outcome(n) }).collect();
    // A token that owns no job, which does not affect the others either.
    items[5].token.counter += 1;
    for again in [false, true] {
        let results = source.finish_attempts(items.clone()).await.unwrap();
        for (n, result) in results.into_iter().enumerate() {
            match n {
                3 => assert!(matches!(&result, Err(FinishError::Invalid(error)) if error.message.contains("deep"))),
                5 => assert_eq!(result, Err(FinishError::LeaseLost)),
                _ => assert_eq!(result, Ok(JobState::Completed), "{n}, again: {again}"),
            }
        }
    }
    for (n, job) in jobs.iter().enumerate() {
        let state = if [3, 5].contains(&n) { JobState::Running } else { JobState::Completed };
        assert_eq!(cluster.job(job.id()).await.state, state, "{n}");
    }
    cluster.shutdown().await;
}

#[tokio::test]
async fn the_key_is_sent_and_a_refusal_differs_from_an_outage() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let received = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4_096];
        let n = socket.read(&mut head).await.unwrap();
        let answer = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 26\r\n\r\n{\"code\":\"unauthenticated\"}";
        socket.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&head[..n]).into_owned()
    });
    let options = HttpOptions { api_key: Some("hunter2".into()), ..HttpOptions::new(format!("http://{address}/at/")) };
    let source = HttpSource::new(options).unwrap();
    let error = source.check().await.unwrap_err();
    assert!(matches!(error, orchestrix_store::StoreError::Backend(_)), "{error}");
    assert!(error.to_string().contains("401") && error.to_string().contains("API key"), "{error}");
    let received = received.await.unwrap();
    assert!(received.starts_with("POST /at/worker/leases/complete-batch "), "{received}");
    assert!(received.to_lowercase().contains("\r\nauthorization: bearer hunter2\r\n"), "{received}");
    // The server is gone.
    let error = source.check().await.unwrap_err();
    assert!(matches!(error, orchestrix_store::StoreError::Unavailable(_)), "{error}");
    assert!(!error.to_string().contains("hunter2"));
}

#[tokio::test]
async fn a_request_to_an_unresponsive_server_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = HttpOptions {
        call_timeout: Duration::from_millis(100),
        ..HttpOptions::new(format!("http://{}", listener.local_addr().unwrap()))
    };
    let source = HttpSource::new(options).unwrap();
    let error = tokio::time::timeout(TIMEOUT, source.check()).await.expect("the request times out").unwrap_err();
    assert!(matches!(error, orchestrix_store::StoreError::Unavailable(_)), "{error}");
}
