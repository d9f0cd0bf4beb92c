//! What handlers say along the way: progress, lines, checkpoints, other jobs.

use std::time::Duration;

use orchestrix_client::Job;
use orchestrix_core::{DependsOn, JobState};
use orchestrix_store::{LogLevel, PageRequest};
use orchestrix_worker::{Context, JobError};
use serde::{Deserialize, Serialize};

use super::{Task, brisk, enqueue, gated, memory, reaches, record, until};

#[tokio::test]
async fn lines_and_progress_are_written_while_the_job_runs_and_before_it_ends() {
    let client = memory();
    let (gate, keeper) = super::gate();
    let worker = brisk(&client).handler(move |task: Task, ctx: Context| {
        let gate = gate.clone();
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
    keeper.next().await;
    let lines = async || client.store().job_logs(job.id(), &PageRequest::first(10)).await.unwrap().items;
    until("the first line is there while it runs", async || lines().await.len() == 1).await;
    let progress = record(&client, job.id()).await.progress.unwrap();
    assert_eq!((progress.percent, progress.message.as_deref()), (Some(25.0), Some("a quarter")));
    keeper.let_through(1);
    job.wait().await.unwrap();
    let lines: Vec<_> = lines().await.into_iter().map(|line| (line.level, line.message, line.attempt)).collect();
    assert_eq!(
        lines,
        [(LogLevel::Info, "began".to_owned(), 1), (LogLevel::Warn, r#"sent {"to":"ada"}"#.to_owned(), 1)]
    );
    assert_eq!(record(&client, job.id()).await.progress.unwrap().percent, Some(99.0));
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_talkative_handler_that_flushes_loses_no_line() {
    let client = memory();
    let worker = brisk(&client).handler(|task: Task, ctx: Context| async move {
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
async fn a_checkpoint_survives_the_attempt_that_saved_it() {
    let client = memory();
    let worker = brisk(&client).handler(|task: Task, ctx: Context| async move {
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
async fn children_belong_to_the_same_whole() {
    let client = memory();
    let worker = brisk(&client).handler(|_: Task, ctx: Context| async move {
        let child = ctx.enqueue(Child.request().delay(Duration::from_secs(60))).await?;
        // It may wait for its parent and for its siblings, and not for what is another tenant's.
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
    let heir = record(&client, find(JobState::Scheduled).id).await;
    assert_eq!((heir.tenant.as_str(), heir.correlation_id.as_deref()), ("acme", Some("order-7")));
    assert_eq!(heir.traceparent.as_deref(), Some(trace));
    let after = record(&client, find(JobState::Blocked).id).await;
    assert_eq!((after.tenant.as_str(), after.depends_on.contains(&heir.id)), ("acme", true));
    let other = record(&client, find(JobState::Created).id).await;
    assert_eq!((other.tenant.as_str(), other.correlation_id.as_deref()), ("other", Some("another")));
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn shared_state_is_found_by_its_type_and_what_is_missing_is_named() {
    struct Price(u64);
    struct Missing;
    let client = memory();
    let worker = brisk(&client).state(Price(3)).handler(|task: Task, ctx: Context| async move {
        if task.n == 0 {
            ctx.state::<Missing>()?;
        }
        Ok(ctx.state::<Price>()?.0 * task.n)
    });
    let worker = worker.start().unwrap();
    assert_eq!(enqueue(&client, 5).await.wait().await.unwrap(), 15);
    let job = enqueue(&client, 0).await;
    let error = reaches(&client, job.id(), JobState::Retrying).await.attempt_log[0].error.clone().unwrap();
    assert!(error.contains("Missing") && error.contains(".state("), "{error}");
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn nothing_that_is_printed_for_debugging_shows_a_payload_or_the_secret_of_a_lease() {
    let client = memory();
    let (worker, keeper) = gated(&client);
    let worker = worker.start().unwrap();
    let request = Task { n: 271_828_182 }.request();
    let printed = format!("{request:?} {client:?} {worker:?}");
    client.enqueue(request).await.unwrap();
    let (_, ctx) = keeper.next().await;
    let printed = format!("{printed} {ctx:?} {:?} {:?}", ctx.lease_token(), ctx.completing(&1).unwrap());
    assert!(!printed.contains("271828182"), "{printed}");
    let secret = ctx.lease_token().secret;
    assert!(!printed.contains(&secret.to_string()) && !printed.contains(&secret.simple().to_string()), "{printed}");
    keeper.let_through(1);
    let _ = worker.shutdown().await;
}
