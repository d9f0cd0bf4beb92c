//! Shutting down.

use std::time::Duration;

use orchestrix_client::Client;
use orchestrix_core::{AttemptOutcome, JobState};
use orchestrix_store::{Directive, PageRequest, WorkerStatus};
use orchestrix_worker::{Context, JobError, StopReason};

use super::{Task, brisk, enqueue, gated, memory, reaches, record, until};

async fn listed(client: &Client) -> Option<WorkerStatus> {
    client.store().list_workers(&PageRequest::first(2)).await.unwrap().items.pop()
}

/// Waits until the worker has shown itself twice more.
async fn shows_itself(client: &Client) {
    for _ in 0..2 {
        let seen = listed(client).await.unwrap().last_seen_at;
        until("it shows itself", async || listed(client).await.unwrap().last_seen_at > seen).await;
    }
}

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

#[tokio::test]
async fn a_worker_that_an_operator_drains_takes_nothing_new_and_ends_when_what_it_runs_is_done() {
    let client = memory();
    let (worker, keeper) = gated(&client);
    // Its own timeout is none of the operator's.
    let worker = worker.concurrency(1).drain_timeout(Duration::from_millis(1)).cancel_grace(Duration::ZERO);
    let worker = worker.start().unwrap();
    let first = enqueue(&client, 1).await;
    let (_, ctx) = keeper.next().await;
    let handle = worker.handle();
    assert!(client.store().direct_worker(worker.name(), Directive::Drain).await.unwrap());
    until("it has heard of it", async || handle.is_ending()).await;
    let second = enqueue(&client, 2).await;
    shows_itself(&client).await;
    assert!(!ctx.is_cancelled(), "it has all the time it needs");
    assert_eq!(listed(&client).await.unwrap().free_slots, 0);
    keeper.let_through(1);
    tokio::time::timeout(super::PATIENCE, worker.ended()).await.unwrap();
    assert_eq!(listed(&client).await, None, "it is off the list");
    assert_eq!(record(&client, first.id()).await.state, JobState::Completed);
    assert_eq!(record(&client, second.id()).await.state, JobState::Pending);
    // Whoever waits for a word to shut it down hears of it.
    worker.told_to_stop().await;
    handle.ended().await;
    let drained = worker.shutdown().await;
    assert_eq!((drained.released, drained.untold), (0, 0));
}

#[tokio::test]
async fn what_a_drained_worker_has_not_begun_is_handed_back_at_once() {
    let client = memory();
    let (worker, keeper) = gated(&client);
    // It has seen quick jobs, so it holds some ready; and they do not go back by themselves before a second is over.
    let worker = worker.concurrency(2).prefetch(100).start().unwrap();
    keeper.let_through(200);
    for n in 0..200 {
        enqueue(&client, n).await;
    }
    until("it works", async || worker.stats().reported == 200).await;
    let mut jobs = Vec::new();
    for n in 0..50 {
        jobs.push(enqueue(&client, n).await);
    }
    until("it holds more than it runs", async || worker.stats().claimed > 202).await;
    client.store().direct_worker(worker.name(), Directive::Drain).await.unwrap();
    until("it has begun to drain", async || worker.handle().is_ending()).await;
    until("what waits is back", async || {
        let mut running = 0;
        for job in &jobs {
            running += usize::from(record(&client, job.id()).await.state == JobState::Running);
        }
        running == 2
    })
    .await;
    assert_eq!(worker.running(), 2, "what runs goes on");
    keeper.let_through(2);
    tokio::time::timeout(super::PATIENCE, worker.ended()).await.unwrap();
    let drained = worker.shutdown().await;
    assert!(drained.released > 0 && drained.untold == 0, "{drained:?}");
}

#[tokio::test]
async fn a_shutdown_hurries_a_worker_that_an_operator_drains() {
    let client = memory();
    let (worker, keeper) = gated(&client);
    let worker = worker.drain_timeout(Duration::from_millis(300)).start().unwrap();
    let job = enqueue(&client, 1).await;
    keeper.next().await;
    client.store().direct_worker(worker.name(), Directive::Drain).await.unwrap();
    until("it has begun to drain", async || worker.handle().is_ending()).await;
    let drained = tokio::time::timeout(super::PATIENCE, worker.shutdown()).await.unwrap();
    assert_eq!((drained.released, drained.untold), (1, 0));
    assert_eq!(record(&client, job.id()).await.state, JobState::Pending);
    assert_eq!(listed(&client).await, None);
}

#[tokio::test]
async fn a_worker_that_shuts_down_is_listed_as_draining_for_as_long_as_it_runs_anything() {
    let client = memory();
    let (worker, keeper) = gated(&client);
    let worker = worker.concurrency(3).drain_timeout(super::PATIENCE).start().unwrap();
    enqueue(&client, 1).await;
    keeper.next().await;
    let shutdown = tokio::spawn(worker.shutdown());
    until("all see it", async || listed(&client).await.unwrap().directive == Directive::Drain).await;
    assert_eq!(listed(&client).await.unwrap().free_slots, 0, "it would take nothing");
    shows_itself(&client).await;
    keeper.let_through(1);
    assert_eq!(shutdown.await.unwrap().untold, 0);
    assert_eq!(listed(&client).await, None);
}
