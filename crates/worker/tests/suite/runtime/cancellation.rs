//! Handlers that are stopped by a timeout, a cancellation or a lost lease.

use std::{sync::Arc, time::Duration};

use orchestrix_client::{Client, Job};
use orchestrix_core::{AttemptOutcome, JobState};
use orchestrix_memory::MemoryStore;
use orchestrix_store::{Fence, ManualClock};
use orchestrix_worker::{Context, JobResult, StopReason};
use tokio::sync::mpsc;

use super::{Task, enqueue, fast_worker, gated_worker, memory_client, wait_for_state, wait_until};

/// Sends a message when it is dropped.
struct Dropped(mpsc::UnboundedSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn an_attempt_that_times_out_is_dropped_after_its_grace_period_and_retried() {
    let client = memory_client();
    let (dropped, mut drops) = mpsc::unbounded_channel();
    let worker = fast_worker(&client).no_coordinator().handler(move |task: Task, _| {
        let dropped = Dropped(dropped.clone());
        async move {
            std::future::pending::<()>().await;
            drop(dropped);
            Ok(task.n)
        }
    });
    let worker = worker.start().unwrap();
    let job = client.enqueue(Task { n: 1 }.request().timeout(Duration::from_millis(50))).await.unwrap();
    let ended = wait_for_state(&client, job.id(), JobState::Retrying).await;
    assert_eq!(ended.attempt_log[0].outcome, AttemptOutcome::TimedOut);
    assert!(drops.recv().await.is_some());
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_handler_that_times_out_can_still_finish_in_its_grace_period() {
    let client = memory_client();
    let worker = fast_worker(&client).no_coordinator().handler(|task: Task, ctx: Context| async move {
        assert!(ctx.deadline().is_some());
        ctx.cancelled().await;
        assert_eq!(ctx.stop_reason(), Some(StopReason::TimedOut));
        Ok(task.n)
    });
    let worker = worker.start().unwrap();
    let job = client.enqueue(Task { n: 5 }.request().timeout(Duration::from_millis(50))).await.unwrap();
    assert_eq!(job.wait().await.unwrap(), 5);
    let _ = worker.shutdown().await;
}

/// Cancels a running job whose handler then returns `result`, and waits until the job reaches `state`.
async fn cancel_running(result: fn(Context) -> JobResult<u64>, state: JobState) {
    let client = memory_client();
    let (started, mut starts) = mpsc::unbounded_channel();
    let worker = fast_worker(&client).handler(move |_: Task, ctx: Context| {
        let started = started.clone();
        async move {
            started.send(())?;
            ctx.cancelled().await;
            assert_eq!(ctx.stop_reason(), Some(StopReason::Cancelled));
            result(ctx)
        }
    });
    let worker = worker.start().unwrap();
    let job = enqueue(&client, 1).await;
    starts.recv().await.unwrap();
    assert_eq!(job.cancel().await.unwrap(), JobState::Running, "the job runs until its worker stops the handler");
    wait_for_state(&client, job.id(), state).await;
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_handler_that_fails_after_a_cancellation_leaves_a_cancelled_job() {
    cancel_running(|_| Err("interrupted".into()), JobState::Cancelled).await;
}

#[tokio::test]
async fn a_handler_that_succeeds_after_a_cancellation_completes_its_job() {
    cancel_running(|_| Ok(1), JobState::Completed).await;
}

#[tokio::test]
async fn a_handler_that_ignores_a_cancellation_is_dropped_after_its_grace_period() {
    let client = memory_client();
    let (worker, gate) = gated_worker(&client);
    let worker = worker.start().unwrap();
    let job = enqueue(&client, 1).await;
    gate.next_started().await;
    job.cancel().await.unwrap();
    let ended = wait_for_state(&client, job.id(), JobState::Cancelled).await;
    assert_eq!(ended.reason.as_deref(), Some("requested"));
    wait_until("the slot is free", async || worker.running() == 0).await;
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_lost_lease_stops_the_handler_and_its_outcome_is_not_reported() {
    let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()));
    let store = MemoryStore::with_clock(Arc::clone(&clock) as Arc<_>);
    let client = Client::new(store);
    let (worker, gate) = gated_worker(&client);
    // One slot, so that the job is not claimed again while its first handler runs.
    let worker = worker.no_coordinator().concurrency(1).start().unwrap();
    let job = enqueue(&client, 1).await;
    let (_, first) = gate.next_started().await;
    // The worker keeps extending the lease by the jumping clock, so jump and reap until the reaper wins.
    wait_until("the lease is reaped", async || {
        clock.advance(Duration::from_secs(120));
        client.store().reap_leases(Fence::NONE, 10, 9).await.unwrap().count > 0
    })
    .await;
    first.cancelled().await;
    assert_eq!(first.stop_reason(), Some(StopReason::LeaseLost));
    let (_, second) = gate.next_started().await;
    assert_eq!((second.id(), second.attempt()), (job.id(), 2));
    assert_ne!(first.lease_token(), second.lease_token());
    gate.let_pass(1);
    wait_for_state(&client, job.id(), JobState::Completed).await;
    assert_eq!(worker.stats().leases_lost, 1);
    let _ = worker.shutdown().await;
}

// The handler blocks the only thread of this runtime for several lease durations. The control thread extends the lease
// and runs the reaper. With the reaper on the blocked thread this test would prove nothing.
#[tokio::test]
async fn a_handler_that_blocks_the_runtime_for_three_leases_keeps_its_lease() {
    let client = memory_client();
    let worker = fast_worker(&client).handler(|task: Task, _| async move {
        std::thread::sleep(Duration::from_millis(3_500));
        Ok(task.n)
    });
    let worker = worker.start().unwrap();
    let job = client.enqueue(Task { n: 9 }.request().lease(Duration::from_secs(1))).await.unwrap();
    assert_eq!(job.wait().await.unwrap(), 9);
    let coordinator = worker.coordinator().unwrap();
    assert!(coordinator.leading, "a leader was running that could reap the lease: {coordinator:?}");
    let ended = super::job_record(&client, job.id()).await;
    assert_eq!((ended.attempts, ended.leases), (1, 1));
    let _ = worker.shutdown().await;
}
