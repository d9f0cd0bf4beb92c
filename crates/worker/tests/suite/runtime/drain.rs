//! Draining and shutting down.

use std::time::Duration;

use orchestrix_client::Client;
use orchestrix_core::{AttemptOutcome, JobState};
use orchestrix_store::{Directive, PageRequest, WorkerStatus};
use orchestrix_worker::{Context, JobError, StopReason};

use super::{Task, enqueue, fast_worker, gated_worker, job_record, memory_client, wait_for_state, wait_until};

/// The registration of the only worker.
async fn registered(client: &Client) -> Option<WorkerStatus> {
    client.store().list_workers(&PageRequest::first(2)).await.unwrap().items.pop()
}

/// Waits for two more heartbeats of the worker.
async fn wait_for_heartbeats(client: &Client) {
    for _ in 0..2 {
        let last_seen = registered(client).await.unwrap().last_seen_at;
        wait_until("the worker sends a heartbeat", async || registered(client).await.unwrap().last_seen_at > last_seen)
            .await;
    }
}

#[tokio::test]
async fn a_shutdown_lets_handlers_finish_and_claims_nothing_new() {
    let client = memory_client();
    let (worker, gate) = gated_worker(&client);
    let worker = worker.concurrency(1).start().unwrap();
    let first = enqueue(&client, 1).await;
    let (_, ctx) = gate.next_started().await;
    let second = enqueue(&client, 2).await;
    let handle = worker.handle();
    let shutdown = tokio::spawn(worker.shutdown());
    super::wait_until("the worker drains", async || handle.is_draining()).await;
    gate.let_pass(1);
    let drained = shutdown.await.unwrap();
    assert_eq!((drained.released, drained.unreported), (0, 0));
    assert!(!ctx.is_cancelled(), "the handler was cancelled before the drain timeout");
    assert_eq!(job_record(&client, first.id()).await.state, JobState::Completed);
    assert_eq!(job_record(&client, second.id()).await.state, JobState::Pending);
}

#[tokio::test]
async fn handlers_that_run_at_the_drain_timeout_are_cancelled_and_released_at_no_cost() {
    let client = memory_client();
    let worker =
        fast_worker(&client).drain_timeout(Duration::from_millis(300)).handler(|task: Task, ctx: Context| async move {
            match task.n {
                // Ignores the cancellation: dropped.
                0 => std::future::pending().await,
                // Gives up when cancelled.
                1 => {
                    ctx.cancelled().await;
                    assert_eq!(ctx.stop_reason(), Some(StopReason::Shutdown));
                    Err("interrupted".into())
                }
                // Fails permanently when cancelled.
                _ => {
                    ctx.cancelled().await;
                    Err(JobError::fatal("broken anyway"))
                }
            }
        });
    let worker = worker.start().unwrap();
    let mut jobs = Vec::new();
    for n in 0..3 {
        jobs.push(enqueue(&client, n).await);
    }
    super::wait_until("all handlers run", async || worker.running() == 3).await;
    let drained = worker.shutdown().await;
    assert_eq!((drained.released, drained.unreported), (2, 0));
    for job in &jobs[..2] {
        let job = wait_for_state(&client, job.id(), JobState::Pending).await;
        assert_eq!((job.attempts, job.attempt_log[0].outcome), (0, AttemptOutcome::Released));
    }
    assert_eq!(job_record(&client, jobs[2].id()).await.state, JobState::Dead);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_never_yields_does_not_block_the_shutdown() {
    let client = memory_client();
    let (unblock, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = std::sync::Arc::new(std::sync::Mutex::new(blocked));
    let worker = fast_worker(&client).drain_timeout(Duration::from_millis(300)).handler(move |task: Task, _| {
        let blocked = std::sync::Arc::clone(&blocked);
        async move {
            let _ = blocked.lock().unwrap().recv();
            Ok(task.n)
        }
    });
    let worker = worker.start().unwrap();
    let job = enqueue(&client, 1).await;
    super::wait_until("the handler runs", async || worker.stats().started == 1).await;
    let drained = tokio::time::timeout(super::TIMEOUT, worker.shutdown()).await.unwrap();
    assert_eq!(drained.released, 1);
    assert_eq!(job_record(&client, job.id()).await.state, JobState::Pending);
    drop(unblock);
}

#[tokio::test]
async fn a_worker_drained_by_an_operator_claims_nothing_new_and_ends_after_its_running_jobs() {
    let client = memory_client();
    let (worker, gate) = gated_worker(&client);
    // The drain timeout does not apply to an operator's drain.
    let worker = worker.concurrency(1).drain_timeout(Duration::from_millis(1)).cancel_grace(Duration::ZERO);
    let worker = worker.start().unwrap();
    let first = enqueue(&client, 1).await;
    let (_, ctx) = gate.next_started().await;
    let handle = worker.handle();
    assert!(client.store().direct_worker(worker.name(), Directive::Drain).await.unwrap());
    wait_until("the worker receives the directive", async || handle.is_draining()).await;
    let second = enqueue(&client, 2).await;
    wait_for_heartbeats(&client).await;
    assert!(!ctx.is_cancelled(), "an operator's drain has no time limit");
    assert_eq!(registered(&client).await.unwrap().free_slots, 0);
    gate.let_pass(1);
    tokio::time::timeout(super::TIMEOUT, worker.ended()).await.unwrap();
    assert_eq!(registered(&client).await, None, "the worker is no longer registered");
    assert_eq!(job_record(&client, first.id()).await.state, JobState::Completed);
    assert_eq!(job_record(&client, second.id()).await.state, JobState::Pending);
    worker.stop_requested().await;
    handle.ended().await;
    let drained = worker.shutdown().await;
    assert_eq!((drained.released, drained.unreported), (0, 0));
}

#[tokio::test]
async fn a_drained_worker_releases_its_queued_jobs_at_once() {
    let client = memory_client();
    let (worker, gate) = gated_worker(&client);
    // After many short jobs the worker prefetches. Overdue prefetched jobs are released only after a second.
    let worker = worker.concurrency(2).prefetch(100).start().unwrap();
    gate.let_pass(200);
    for n in 0..200 {
        enqueue(&client, n).await;
    }
    wait_until("the short jobs are done", async || worker.stats().reported == 200).await;
    let mut jobs = Vec::new();
    for n in 0..50 {
        jobs.push(enqueue(&client, n).await);
    }
    wait_until("the worker prefetches", async || worker.stats().claimed > 202).await;
    client.store().direct_worker(worker.name(), Directive::Drain).await.unwrap();
    wait_until("the worker drains", async || worker.handle().is_draining()).await;
    wait_until("the queued jobs are released", async || {
        let mut running = 0;
        for job in &jobs {
            running += usize::from(job_record(&client, job.id()).await.state == JobState::Running);
        }
        running == 2
    })
    .await;
    assert_eq!(worker.running(), 2, "the running jobs go on");
    gate.let_pass(2);
    tokio::time::timeout(super::TIMEOUT, worker.ended()).await.unwrap();
    let drained = worker.shutdown().await;
    assert!(drained.released > 0 && drained.unreported == 0, "{drained:?}");
}

#[tokio::test]
async fn a_shutdown_applies_the_drain_timeout_to_a_worker_drained_by_an_operator() {
    let client = memory_client();
    let (worker, gate) = gated_worker(&client);
    let worker = worker.drain_timeout(Duration::from_millis(300)).start().unwrap();
    let job = enqueue(&client, 1).await;
    gate.next_started().await;
    client.store().direct_worker(worker.name(), Directive::Drain).await.unwrap();
    wait_until("the worker drains", async || worker.handle().is_draining()).await;
    let drained = tokio::time::timeout(super::TIMEOUT, worker.shutdown()).await.unwrap();
    assert_eq!((drained.released, drained.unreported), (1, 0));
    assert_eq!(job_record(&client, job.id()).await.state, JobState::Pending);
    assert_eq!(registered(&client).await, None);
}

#[tokio::test]
async fn a_worker_that_shuts_down_is_listed_as_draining_while_it_runs_jobs() {
    let client = memory_client();
    let (worker, gate) = gated_worker(&client);
    let worker = worker.concurrency(3).drain_timeout(super::TIMEOUT).start().unwrap();
    enqueue(&client, 1).await;
    gate.next_started().await;
    let shutdown = tokio::spawn(worker.shutdown());
    wait_until("the worker is listed as draining", async || {
        registered(&client).await.unwrap().directive == Directive::Drain
    })
    .await;
    assert_eq!(registered(&client).await.unwrap().free_slots, 0, "a draining worker has no free slots");
    wait_for_heartbeats(&client).await;
    gate.let_pass(1);
    assert_eq!(shutdown.await.unwrap().unreported, 0);
    assert_eq!(registered(&client).await, None);
}
