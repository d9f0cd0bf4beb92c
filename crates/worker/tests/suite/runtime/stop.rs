//! Handlers that are asked to stop: by a timeout, by somebody, by a lost lease.

use std::{sync::Arc, time::Duration};

use orchestrix_client::{Client, Job};
use orchestrix_core::{AttemptOutcome, JobState};
use orchestrix_memory::MemoryStore;
use orchestrix_store::{Fence, ManualClock};
use orchestrix_worker::{Context, JobResult, StopReason};
use tokio::sync::mpsc;

use super::{Task, brisk, enqueue, gated, memory, reaches, until};

/// Tells when it is dropped.
struct Dropped(mpsc::UnboundedSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn an_attempt_that_runs_over_is_dropped_after_its_grace_and_tried_again() {
    let client = memory();
    let (dropped, mut drops) = mpsc::unbounded_channel();
    let worker = brisk(&client).no_coordinator().handler(move |task: Task, _| {
        let dropped = Dropped(dropped.clone());
        async move {
            std::future::pending::<()>().await;
            drop(dropped);
            Ok(task.n)
        }
    });
    let worker = worker.start().unwrap();
    let job = client.enqueue(Task { n: 1 }.request().timeout(Duration::from_millis(50))).await.unwrap();
    let ended = reaches(&client, job.id(), JobState::Retrying).await;
    assert_eq!(ended.attempt_log[0].outcome, AttemptOutcome::TimedOut);
    assert!(drops.recv().await.is_some());
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_handler_is_told_that_its_time_is_up_and_may_still_finish() {
    let client = memory();
    let worker = brisk(&client).no_coordinator().handler(|task: Task, ctx: Context| async move {
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

async fn cancelled(answer: fn(Context) -> JobResult<u64>, state: JobState) {
    let client = memory();
    let (begun, mut begins) = mpsc::unbounded_channel();
    let worker = brisk(&client).handler(move |_: Task, ctx: Context| {
        let begun = begun.clone();
        async move {
            begun.send(())?;
            ctx.cancelled().await;
            assert_eq!(ctx.stop_reason(), Some(StopReason::Cancelled));
            answer(ctx)
        }
    });
    let worker = worker.start().unwrap();
    let job = enqueue(&client, 1).await;
    begins.recv().await.unwrap();
    assert_eq!(job.cancel().await.unwrap(), JobState::Running, "its worker has to let go");
    reaches(&client, job.id(), state).await;
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_cancelled_handler_that_gives_up_leaves_a_cancelled_job() {
    cancelled(|_| Err("interrupted".into()), JobState::Cancelled).await;
}

#[tokio::test]
async fn a_cancelled_handler_that_succeeds_all_the_same_has_completed_its_job() {
    cancelled(|_| Ok(1), JobState::Completed).await;
}

#[tokio::test]
async fn a_handler_that_does_not_listen_is_dropped_after_its_grace() {
    let client = memory();
    let (worker, keeper) = gated(&client);
    let worker = worker.start().unwrap();
    let job = enqueue(&client, 1).await;
    keeper.next().await;
    job.cancel().await.unwrap();
    let ended = reaches(&client, job.id(), JobState::Cancelled).await;
    assert_eq!(ended.reason.as_deref(), Some("requested"));
    until("the slot is free", async || worker.running() == 0).await;
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_lost_lease_stops_the_handler_and_its_outcome_is_not_told() {
    let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()));
    let store = MemoryStore::with_clock(Arc::clone(&clock) as Arc<_>);
    let client = Client::new(store);
    let (worker, keeper) = gated(&client);
    // One slot, so that the job is not taken again while its first handler runs.
    let worker = worker.no_coordinator().concurrency(1).start().unwrap();
    let job = enqueue(&client, 1).await;
    let (_, first) = keeper.next().await;
    // Everything that the worker renews meanwhile is renewed to the clock that jumps, so jump and reap until one is lost.
    until("the lease is reaped", async || {
        clock.advance(Duration::from_secs(120));
        client.store().reap_leases(Fence::NONE, 10, 9).await.unwrap().count > 0
    })
    .await;
    first.cancelled().await;
    assert_eq!(first.stop_reason(), Some(StopReason::LeaseLost));
    let (_, second) = keeper.next().await;
    assert_eq!((second.id(), second.attempt()), (job.id(), 2));
    assert_ne!(first.lease_token(), second.lease_token());
    keeper.let_through(1);
    reaches(&client, job.id(), JobState::Completed).await;
    assert_eq!(worker.stats().leases_lost, 1);
    let _ = worker.shutdown().await;
}

// The only thread of this runtime is blocked for several leases. Leases, presence and the reaper live elsewhere, and so the
// lease holds: with a reaper on the same thread this would prove nothing.
#[tokio::test]
async fn a_handler_that_blocks_the_runtime_for_three_leases_keeps_its_lease() {
    let client = memory();
    let worker = brisk(&client).handler(|task: Task, _| async move {
        std::thread::sleep(Duration::from_millis(3_500));
        Ok(task.n)
    });
    let worker = worker.start().unwrap();
    let job = client.enqueue(Task { n: 9 }.request().lease(Duration::from_secs(1))).await.unwrap();
    assert_eq!(job.wait().await.unwrap(), 9);
    let coordinator = worker.coordinator().unwrap();
    assert!(coordinator.leading, "somebody was there to take the lease away: {coordinator:?}");
    let ended = super::record(&client, job.id()).await;
    assert_eq!((ended.attempts, ended.leases), (1, 1));
    let _ = worker.shutdown().await;
}
