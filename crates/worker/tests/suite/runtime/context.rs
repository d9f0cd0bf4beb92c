//! What a handler does through its context: progress, logs, checkpoints, child jobs, shared state.

use std::time::Duration;

use orchestrix_client::Job;
use orchestrix_core::{DependsOn, JobState};
use orchestrix_store::{LogLevel, PageRequest};
use orchestrix_worker::{Context, JobError};
use serde::{Deserialize, Serialize};

use super::{Task, enqueue, fast_worker, gated_worker, job_record, memory_client, wait_for_state, wait_until};

#[tokio::test]
async fn log_lines_and_progress_are_written_while_the_job_runs_and_before_it_finishes() {
    let client = memory_client();
    let (handler_gate, gate) = super::gate();
    let worker = fast_worker(&client).handler(move |task: Task, ctx: Context| {
        let gate = handler_gate.clone();
        async move {
            ctx.info("began");
            ctx.progress_with(25.0, "a quarter");
            gate.pass(task.n, &ctx).await?;
            ctx.log_with(LogLevel::Warn, "sent", &serde_json::json!({ "to": "ada" }));
            ctx.progress(99.0);
            Ok(task.n)
        }
    });
    let worker = worker.start().unwrap();
    let job = enqueue(&client, 1).await;
    gate.next_started().await;
    let lines = async || client.store().job_logs(job.id(), &PageRequest::first(10)).await.unwrap().items;
    wait_until("the first line is written while the job runs", async || lines().await.len() == 1).await;
    let progress = job_record(&client, job.id()).await.progress.unwrap();
    assert_eq!((progress.percent, progress.message.as_deref()), (Some(25.0), Some("a quarter")));
    gate.let_pass(1);
    job.wait().await.unwrap();
    let lines: Vec<_> = lines().await.into_iter().map(|line| (line.level, line.message, line.attempt)).collect();
    assert_eq!(
        lines,
        [(LogLevel::Info, "began".to_owned(), 1), (LogLevel::Warn, r#"sent {"to":"ada"}"#.to_owned(), 1)]
    );
    assert_eq!(job_record(&client, job.id()).await.progress.unwrap().percent, Some(99.0));
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_handler_that_flushes_loses_no_log_line() {
    let client = memory_client();
    let worker = fast_worker(&client).handler(|task: Task, ctx: Context| async move {
        for line in 0..task.n {
            ctx.info(line);
            if line % 500 == 499 {
                ctx.flush().await?;
            }
        }
        Ok(task.n)
    });
    let worker = worker.start().unwrap();
    let job = enqueue(&client, 2_600).await;
    job.wait().await.unwrap();
    let mut lines = Vec::new();
    let mut page = client.store().job_logs(job.id(), &PageRequest::first(1_000)).await.unwrap();
    loop {
        lines.extend(page.items);
        let Some(next) = page.next else { break };
        page = client.store().job_logs(job.id(), &PageRequest::after(next, 1_000)).await.unwrap();
    }
    let expected: Vec<String> = (0..2_600).map(|line| line.to_string()).collect();
    assert_eq!(lines.into_iter().map(|line| line.message).collect::<Vec<_>>(), expected);
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_checkpoint_is_available_to_the_next_attempt() {
    let client = memory_client();
    let worker = fast_worker(&client).handler(|task: Task, ctx: Context| async move {
        let done: u64 = ctx.checkpoint()?.unwrap_or(0);
        if done < task.n {
            ctx.save_checkpoint(&(done + 1)).await?;
            return Err(JobError::retry_after(Duration::ZERO, "interrupted"));
        }
        Ok(done)
    });
    let worker = worker.start().unwrap();
    let job = enqueue(&client, 3).await;
    assert_eq!(job.wait().await.unwrap(), 3);
    let _ = worker.shutdown().await;
}

#[derive(Debug, Serialize, Deserialize)]
struct Child;

impl Job for Child {
    type Output = ();
    const TYPE: &'static str = "child";
}

#[tokio::test]
async fn child_jobs_inherit_tenant_correlation_id_and_trace() {
    let client = memory_client();
    let worker = fast_worker(&client).handler(|_: Task, ctx: Context| async move {
        let child = ctx.enqueue(Child.request().delay(Duration::from_secs(60))).await?;
        // A child may depend on its parent and its siblings, but not on another tenant's job.
        let after = Child
            .request()
            .depends_on(DependsOn::Job(ctx.id()))
            .depends_on(DependsOn::Job(child.id))
            .correlation_id("after");
        let after = ctx.enqueue(after).await?;
        assert_eq!(after.state, JobState::Blocked);
        let foreign =
            ctx.enqueue(Child.request().tenant("other").depends_on(DependsOn::Job(child.id))).await.unwrap_err();
        assert!(foreign.to_string().contains(&format!("there is no job {}", child.id)), "{foreign}");
        ctx.enqueue(Child.request().tenant("other").correlation_id("another").hold()).await?;
        let bad = ctx.enqueue(Child.request().queue("no good")).await.unwrap_err();
        assert!(bad.to_string().contains("queue"));
        ctx.info(child.id);
        Ok(0)
    });
    let worker = worker.start().unwrap();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let request = Task { n: 1 }.request().tenant("acme").correlation_id("order-7").traceparent(trace);
    client.enqueue(request).await.unwrap().wait().await.unwrap();
    let page = client.store().list_jobs(&Default::default(), &PageRequest::first(10)).await.unwrap();
    let find = |state| page.items.iter().find(|job| job.state == state).unwrap();
    let child = job_record(&client, find(JobState::Scheduled).id).await;
    assert_eq!((child.tenant.as_str(), child.correlation_id.as_deref()), ("acme", Some("order-7")));
    assert_eq!(child.traceparent.as_deref(), Some(trace));
    let after = job_record(&client, find(JobState::Blocked).id).await;
    assert_eq!((after.tenant.as_str(), after.depends_on.contains(&child.id)), ("acme", true));
    let other = job_record(&client, find(JobState::Created).id).await;
    assert_eq!((other.tenant.as_str(), other.correlation_id.as_deref()), ("other", Some("another")));
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn shared_state_is_looked_up_by_type_and_the_error_names_a_missing_type() {
    struct Price(u64);
    struct Missing;
    let client = memory_client();
    let worker = fast_worker(&client).state(Price(3)).handler(|task: Task, ctx: Context| async move {
        if task.n == 0 {
            ctx.state::<Missing>()?;
        }
        Ok(ctx.state::<Price>()?.0 * task.n)
    });
    let worker = worker.start().unwrap();
    assert_eq!(enqueue(&client, 5).await.wait().await.unwrap(), 15);
    let job = enqueue(&client, 0).await;
    let error = wait_for_state(&client, job.id(), JobState::Retrying).await.attempt_log[0].error.clone().unwrap();
    assert!(error.contains("Missing") && error.contains(".state("), "{error}");
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn debug_output_shows_neither_payloads_nor_lease_secrets() {
    let client = memory_client();
    let (worker, gate) = gated_worker(&client);
    let worker = worker.start().unwrap();
    let request = Task { n: 271_828_182 }.request();
    let printed = format!("{request:?} {client:?} {worker:?}");
    client.enqueue(request).await.unwrap();
    let (_, ctx) = gate.next_started().await;
    let printed = format!("{printed} {ctx:?} {:?} {:?}", ctx.lease_token(), ctx.completing(&1).unwrap());
    assert!(!printed.contains("271828182"), "{printed}");
    let secret = ctx.lease_token().secret;
    assert!(!printed.contains(&secret.to_string()) && !printed.contains(&secret.simple().to_string()), "{printed}");
    gate.let_pass(1);
    let _ = worker.shutdown().await;
}
