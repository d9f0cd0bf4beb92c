//! Shutting down.

use std::time::Duration;

use orchestrix_core::{AttemptOutcome, JobState};
use orchestrix_worker::{Context, JobError, StopReason};

use super::{Task, brisk, enqueue, gated, memory, reaches, record};

#[tokio::test]
async fn handlers_may_finish_and_nothing_new_is_taken() {
    let client = memory();
    let (worker, keeper) = gated(&client);
    let worker = worker.concurrency(1).start().unwrap();
    let first = enqueue(&client, 1).await;
    let (_, ctx) = keeper.next().await;
    let second = enqueue(&client, 2).await;
    let handle = worker.handle();
    let shutdown = tokio::spawn(worker.shutdown());
    super::until("it takes nothing new", async || handle.is_ending()).await;
    keeper.let_through(1);
    let drained = shutdown.await.unwrap();
    assert_eq!((drained.released, drained.untold), (0, 0));
    assert!(!ctx.is_cancelled(), "there was time");
    assert_eq!(record(&client, first.id()).await.state, JobState::Completed);
    assert_eq!(record(&client, second.id()).await.state, JobState::Pending);
}

#[tokio::test]
async fn what_is_left_at_the_deadline_is_asked_to_stop_then_handed_back_and_costs_no_attempt() {
    let client = memory();
    let worker =
        brisk(&client).drain_timeout(Duration::from_millis(300)).handler(|task: Task, ctx: Context| async move {
            match task.n {
                // Does not listen: dropped.
                0 => std::future::pending().await,
                // Listens, and gives up.
                1 => {
                    ctx.cancelled().await;
                    assert_eq!(ctx.stop_reason(), Some(StopReason::Shutdown));
                    Err("interrupted".into())
                }
                // Listens, and says something else on purpose.
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
    super::until("all run", async || worker.running() == 3).await;
    let drained = worker.shutdown().await;
    assert_eq!((drained.released, drained.untold), (2, 0));
    for job in &jobs[..2] {
        let job = reaches(&client, job.id(), JobState::Pending).await;
        assert_eq!((job.attempts, job.attempt_log[0].outcome), (0, AttemptOutcome::Released));
    }
    assert_eq!(record(&client, jobs[2].id()).await.state, JobState::Dead);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_never_yields_does_not_hold_up_the_shutdown() {
    let client = memory();
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let told = std::sync::Arc::new(std::sync::Mutex::new(told));
    let worker = brisk(&client).drain_timeout(Duration::from_millis(300)).handler(move |task: Task, _| {
        let told = std::sync::Arc::clone(&told);
        async move {
            let _ = told.lock().unwrap().recv();
            Ok(task.n)
        }
    });
    let worker = worker.start().unwrap();
    let job = enqueue(&client, 1).await;
    super::until("it runs", async || worker.stats().started == 1).await;
    let drained = tokio::time::timeout(super::PATIENCE, worker.shutdown()).await.unwrap();
    assert_eq!(drained.released, 1);
    assert_eq!(record(&client, job.id()).await.state, JobState::Pending);
    drop(tell);
}
