//! The Rust worker over the API: the same runtime as on a database, and nothing lost in between.

pub(crate) mod ground;
mod waits;

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

use self::ground::{Ground, PATIENCE, SOON, on_both, until};

/// A job whose handler the test provides.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) n: u64,
}

impl Job for Task {
    type Output = Value;
    const TYPE: &'static str = "task";
}

on_both! {
    jobs_are_done_and_failures_tried_again
    what_a_handler_says_arrives
    a_cancel_reaches_the_handler
    a_server_that_restarts_costs_nothing
    an_outcome_that_the_server_cannot_read_spoils_no_other
}

async fn jobs_are_done_and_failures_tried_again(ground: Ground) {
    let worker = ground.worker().handler(|task: Task, ctx: Context| async move {
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
    let requests = (0..200).map(|n| Task { n }.request().retry(SOON).tenant("acme"));
    let jobs = ground.client.enqueue_many(requests.collect::<Vec<_>>()).await.unwrap();
    for (n, job) in jobs.iter().enumerate().skip(2) {
        let job = ground.reaches(job.id(), JobState::Completed).await;
        assert_eq!(job.result.unwrap().as_str(), n.to_string());
        assert_eq!(job.attempts, if n % 10 == 0 { 2 } else { 1 }, "{n}");
    }
    let dead = ground.reaches(jobs[0].id(), JobState::Dead).await;
    assert_eq!(dead.attempt_log[0].error.as_deref(), Some("never"));
    let parent = ground.reaches(jobs[1].id(), JobState::Completed).await;
    let child: Value = parent.result.unwrap().to().unwrap();
    let child = ground.reaches(child["child"].as_str().unwrap().parse().unwrap(), JobState::Completed).await;
    assert_eq!(child.tenant.as_str(), "acme", "it is of the tenant of its parent");
    until("all outcomes are told", async || worker.stats().reported == 200 + 19 + 3).await;
    let listed = ground.store().list_workers(&PageRequest::first(10)).await.unwrap().items;
    assert_eq!((listed[0].info.name.as_str(), listed[0].info.concurrency), ("remote", 10));
    assert_eq!(listed[0].info.job_types.as_ref().unwrap()[0].as_str(), "task");
    assert_eq!(worker.shutdown().await.untold, 0);
    assert!(ground.store().list_workers(&PageRequest::first(10)).await.unwrap().items.is_empty(), "it took leave");
    ground.end().await;
}

async fn what_a_handler_says_arrives(ground: Ground) {
    let (gate, through) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let worker = {
        let (gate, through) = (Arc::clone(&gate), Arc::clone(&through));
        ground.worker().handler(move |_: Task, ctx: Context| {
            let (gate, through) = (Arc::clone(&gate), Arc::clone(&through));
            async move {
                if let Some(kept) = ctx.checkpoint::<u64>()? {
                    return Ok(json!(kept));
                }
                ctx.warn("began");
                ctx.progress_with(25.0, "a quarter");
                ctx.save_checkpoint(&7).await?;
                through.add_permits(1);
                gate.acquire().await?.forget();
                // Written as JSON, more than one request may carry.
                for _ in 0..60 {
                    ctx.info("\u{1}".repeat(15_000));
                }
                Err(JobError::new("once more"))
            }
        })
    };
    let worker = worker.start().unwrap();
    let id = ground.enqueue(Task { n: 1 }.request().retry(SOON)).await;
    through.acquire().await.unwrap().forget();
    assert_eq!(ground.job(id).await.checkpoint.unwrap().as_str(), "7", "durable when it was saved");
    let lines = async || ground.store().job_logs(id, &PageRequest::first(1_000)).await.unwrap().items;
    until("the first line is there while it runs", async || lines().await.len() == 1).await;
    let progress = ground.job(id).await.progress.unwrap();
    assert_eq!((progress.percent, progress.message.as_deref()), (Some(25.0), Some("a quarter")));
    gate.add_permits(1);
    let job = ground.reaches(id, JobState::Completed).await;
    assert_eq!((job.result.unwrap().as_str(), job.attempts), ("7", 2));
    let lines = lines().await;
    assert_eq!((lines.len(), lines[0].level, lines[0].message.as_str()), (61, LogLevel::Warn, "began"));
    let _ = worker.shutdown().await;
    ground.end().await;
}

async fn a_cancel_reaches_the_handler(ground: Ground) {
    let (tell, mut told) = mpsc::unbounded_channel();
    let worker = ground.worker().handler(move |_: Task, ctx: Context| {
        let tell = tell.clone();
        async move {
            ctx.cancelled().await;
            tell.send(ctx.stop_reason())?;
            Err(JobError::new("stopped"))
        }
    });
    let worker = worker.start().unwrap();
    let id = ground.enqueue(Task { n: 1 }).await;
    ground.reaches(id, JobState::Running).await;
    ground.store().cancel_job(id).await.unwrap();
    let reason = tokio::time::timeout(PATIENCE, told.recv()).await.expect("it hears").unwrap();
    assert_eq!(reason, Some(StopReason::Cancelled));
    ground.reaches(id, JobState::Cancelled).await;
    let _ = worker.shutdown().await;
    ground.end().await;
}

async fn a_server_that_restarts_costs_nothing(mut ground: Ground) {
    let (tell, mut told) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let worker = {
        let gate = Arc::clone(&gate);
        ground.worker().concurrency(4).handler(move |task: Task, ctx: Context| {
            let (gate, tell) = (Arc::clone(&gate), tell.clone());
            async move {
                ctx.info("began");
                tell.send(task.n)?;
                gate.acquire().await?.forget();
                ctx.info("ends");
                Ok(json!(task.n))
            }
        })
    };
    let worker = worker.start().unwrap();
    let mut jobs = Vec::new();
    for n in 0..12 {
        jobs.push(ground.enqueue(Task { n }).await);
    }
    for _ in 0..4 {
        tokio::time::timeout(PATIENCE, told.recv()).await.expect("handlers begin").unwrap();
    }
    ground.stop().await;
    gate.add_permits(4);
    until("handlers end while nobody hears", async || worker.running() == 0).await;
    assert_eq!(worker.stats().reported, 0);
    ground.serve().await;
    gate.add_permits(8);
    for (n, id) in jobs.into_iter().enumerate() {
        let job = ground.reaches(id, JobState::Completed).await;
        assert_eq!((job.attempts, job.losses, job.leases), (1, 0, 1), "{n} ran once: {job:?}");
        let lines = ground.store().job_logs(id, &PageRequest::first(10)).await.unwrap().items;
        assert_eq!(lines.iter().map(|line| line.message.as_str()).collect::<Vec<_>>(), ["began", "ends"]);
    }
    let stats = worker.stats();
    assert_eq!((stats.leases_lost, stats.stale_rejected), (0, 0), "{stats:?}");
    assert_eq!(worker.shutdown().await.untold, 0);
    ground.end().await;
}

async fn an_outcome_that_the_server_cannot_read_spoils_no_other(ground: Ground) {
    let source = HttpSource::new(HttpOptions::new(ground.url())).unwrap();
    for n in 0..9 {
        ground.enqueue(Task { n }).await;
    }
    let jobs = source.lease(&ClaimRequest::any(WorkerName::new("hand").unwrap(), 9)).await.unwrap();
    let nested = |depth: usize| Json::trusted(&format!("{}1{}", "[".repeat(depth), "]".repeat(depth)));
    let outcome = |n: usize| Outcome::Complete { result: Some(nested(if n == 3 { 200 } else { 2 })) };
    let mut items: Vec<OutcomeReport> =
        jobs.iter().enumerate().map(|(n, job)| OutcomeReport { token: job.token, outcome: outcome(n) }).collect();
    // Of nobody, and so lost; which spoils nothing either.
    items[5].token.counter += 1;
    for again in [false, true] {
        let answers = source.report(items.clone()).await.unwrap();
        for (n, answer) in answers.into_iter().enumerate() {
            match n {
                3 => assert!(matches!(&answer, Err(FinishError::Invalid(error)) if error.message.contains("deep"))),
                5 => assert_eq!(answer, Err(FinishError::LeaseLost)),
                _ => assert_eq!(answer, Ok(JobState::Completed), "{n}, again: {again}"),
            }
        }
    }
    for (n, job) in jobs.iter().enumerate() {
        let state = if [3, 5].contains(&n) { JobState::Running } else { JobState::Completed };
        assert_eq!(ground.job(job.id()).await.state, state, "{n}");
    }
    ground.end().await;
}

#[tokio::test]
async fn the_key_is_sent_and_a_refusal_is_told_from_an_absence() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heard = tokio::spawn(async move {
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
    let heard = heard.await.unwrap();
    assert!(heard.starts_with("POST /at/worker/leases/complete-batch "), "{heard}");
    assert!(heard.to_lowercase().contains("\r\nauthorization: bearer hunter2\r\n"), "{heard}");
    // Nobody listens there any more.
    let error = source.check().await.unwrap_err();
    assert!(matches!(error, orchestrix_store::StoreError::Unavailable(_)), "{error}");
    assert!(!error.to_string().contains("hunter2"));
}

#[tokio::test]
async fn a_server_that_never_answers_is_not_waited_for_without_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = HttpOptions {
        call_timeout: Duration::from_millis(100),
        ..HttpOptions::new(format!("http://{}", listener.local_addr().unwrap()))
    };
    let source = HttpSource::new(options).unwrap();
    let error = tokio::time::timeout(PATIENCE, source.check()).await.expect("it gives up").unwrap_err();
    assert!(matches!(error, orchestrix_store::StoreError::Unavailable(_)), "{error}");
}
