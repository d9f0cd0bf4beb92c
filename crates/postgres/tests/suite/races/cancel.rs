//! A cancel concurrent with other changes of the job.

use orchestrix_core::{Event, IllegalTransition, JobState, NewJob, Start};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{Fence, FinishError, Outcome, Result, StoreError, prelude::*};

use crate::{
    invariants,
    jobs::*,
    locks::{LockHolder, until_waiting},
    support,
};

const ROUNDS: usize = 40;

fn too_late(answer: &Result<JobState>) -> bool {
    matches!(
        answer,
        Err(StoreError::IllegalTransition(IllegalTransition { from: JobState::Completed, event: Event::Cancel }))
    )
}

/// Runs two calls concurrently; rounds alternate in which one starts first.
async fn concurrently<A: Send + 'static, B: Send + 'static>(
    round: usize,
    one: impl Future<Output = A> + Send + 'static,
    other: impl Future<Output = B> + Send + 'static,
) -> (A, B) {
    let (one, other) = if round.is_multiple_of(2) {
        let one = tokio::spawn(one);
        (one, tokio::spawn(other))
    } else {
        let other = tokio::spawn(other);
        (tokio::spawn(one), other)
    };
    (one.await.unwrap(), other.await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completion_wins_over_a_concurrent_cancel() {
    let database = support::database();
    let [worker, client]: [PostgresStore; 2] = open_many(database.url()).await;
    for round in 0..ROUNDS {
        let token = start(&worker, job("t")).await.token;
        let (store, other) = (worker.clone(), client.clone());
        let (end, cancel) =
            concurrently(round, async move { finish(&store, token, Outcome::DONE).await }, async move {
                other.cancel_job(token.job).await
            })
            .await;
        assert_eq!(end, Ok(JobState::Completed));
        assert!(matches!(cancel, Ok(JobState::Running)) || too_late(&cancel), "{cancel:?}");
        assert_eq!(state(&worker, token.job).await, JobState::Completed);
    }
    invariants::assert_consistent(&support::connect(database.url()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_does_not_retry_a_job_whose_cancel_was_accepted() {
    let database = support::database();
    let [worker, client]: [PostgresStore; 2] = open_many(database.url()).await;
    for round in 0..ROUNDS {
        let token = start(&worker, job("t")).await.token;
        let (store, other) = (worker.clone(), client.clone());
        let (end, cancel) =
            concurrently(round, async move { finish(&store, token, Outcome::fail("once")).await }, async move {
                other.cancel_job(token.job).await
            })
            .await;
        // After a request, the failure cancels the job; otherwise the cancel finds it waiting for its next attempt.
        let expected = match cancel.expect("the job can be cancelled") {
            JobState::Running => Ok(JobState::Cancelled),
            JobState::Cancelled => Ok(JobState::Retrying),
            other => panic!("unexpected state after a cancel: {other}"),
        };
        assert_eq!(end, expected);
        let job = get(&worker, token.job).await;
        assert_eq!((job.state, job.attempts, job.attempt_log.len()), (JobState::Cancelled, 1, 1));
    }
    invariants::assert_consistent(&support::connect(database.url()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_job_is_either_cancelled_or_claimed() {
    let database = support::database();
    let [worker, client]: [PostgresStore; 2] = open_many(database.url()).await;
    let mut claims = 0;
    for round in 0..ROUNDS {
        let id = enqueue(&worker, job("t")).await;
        let (store, other) = (worker.clone(), client.clone());
        let (claimed, cancel) =
            concurrently(round, async move { claim(&store, 10).await }, async move { other.cancel_job(id).await })
                .await;
        claims += claimed.len();
        match cancel.expect("the job can be cancelled") {
            JobState::Cancelled => {
                assert!(claimed.is_empty(), "a cancelled job was claimed");
                assert_eq!(state(&worker, id).await, JobState::Cancelled);
            }
            JobState::Running => {
                assert_eq!(claimed.len(), 1);
                assert!(get(&worker, id).await.cancel_requested);
                assert_eq!(finish(&worker, claimed[0].token, Outcome::Cancelled).await, Ok(JobState::Cancelled));
            }
            other => panic!("unexpected state after a cancel: {other}"),
        }
    }
    println!("{claims} of {ROUNDS} claimed");
    invariants::assert_consistent(&support::connect(database.url()).await).await;
}

#[tokio::test]
async fn a_completion_that_waited_for_a_cancel_request_is_accepted() {
    let database = support::database();
    let store = open(database.url()).await;
    let client = support::connect(database.url()).await;
    for (outcome, expected) in [(Outcome::DONE, JobState::Completed), (Outcome::fail("x"), JobState::Cancelled)] {
        let token = start(&store, job("t")).await.token;
        let request = LockHolder::with(database.url(), "UPDATE orchestrix.job SET cancel_requested = true").await;
        let caller = store.clone();
        let end = tokio::spawn(async move { finish(&caller, token, outcome).await });
        until_waiting(&client, 1).await;
        request.commit().await;
        assert_eq!(end.await.unwrap(), Ok(expected), "a failure is decided again with the request");
        assert_eq!(state(&store, token.job).await, expected);
    }
    invariants::assert_consistent(&client).await;
}

#[tokio::test]
async fn a_cancel_that_waited_for_a_completion_is_too_late() {
    let database = support::database();
    let store = open(database.url()).await;
    let client = support::connect(database.url()).await;
    let token = start(&store, job("t")).await.token;
    let holder = LockHolder::with_history_of(database.url(), token.job).await;
    let caller = store.clone();
    let end = tokio::spawn(async move { finish(&caller, token, Outcome::DONE).await });
    until_waiting(&client, 1).await;
    let caller = store.clone();
    let cancel = tokio::spawn(async move { caller.cancel_job(token.job).await });
    until_waiting(&client, 2).await;
    holder.rollback().await;
    assert_eq!(end.await.unwrap(), Ok(JobState::Completed));
    let cancel = cancel.await.unwrap();
    assert!(too_late(&cancel), "{cancel:?}");
    assert_eq!(state(&store, token.job).await, JobState::Completed);
    invariants::assert_consistent(&client).await;
}

#[tokio::test]
async fn an_outcome_that_waited_for_a_cancelled_and_redriven_job_is_refused() {
    let database = support::database();
    let store = open(database.url()).await;
    let client = support::connect(database.url()).await;
    let token = start(&store, job("t")).await.token;
    store.cancel_job(token.job).await.unwrap();
    // The worker confirms the cancel and is stopped in the middle.
    let holder = LockHolder::with_history_of(database.url(), token.job).await;
    let caller = store.clone();
    let confirm = tokio::spawn(async move { finish(&caller, token, Outcome::Cancelled).await });
    until_waiting(&client, 1).await;
    let caller = store.clone();
    let success = tokio::spawn(async move { finish(&caller, token, Outcome::DONE).await });
    until_waiting(&client, 2).await;
    holder.rollback().await;
    assert_eq!(confirm.await.unwrap(), Ok(JobState::Cancelled));
    assert_eq!(success.await.unwrap(), Err(FinishError::LeaseLost));
    assert_eq!(store.retry_job(token.job).await.unwrap(), JobState::Pending);
    assert_eq!(finish(&store, token, Outcome::DONE).await, Err(FinishError::LeaseLost));
    assert_eq!(state(&store, token.job).await, JobState::Pending);
    invariants::assert_consistent(&client).await;
}

/// A scheduled job that is due.
async fn due(store: &PostgresStore, client: &tokio_postgres::Client) -> orchestrix_core::JobId {
    let later = Start::After(std::time::Duration::from_secs(3600));
    let id = enqueue(store, NewJob { start: later, ..job("t") }).await;
    let sql = "UPDATE orchestrix.job SET eligible_at = now() - interval '1 second' WHERE id = $1";
    client.execute(sql, &[&id.as_uuid()]).await.unwrap();
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_promoted_and_cancelled_concurrently_stays_cancelled() {
    let database = support::database();
    let [leader, client]: [PostgresStore; 2] = open_many(database.url()).await;
    let sql = support::connect(database.url()).await;
    for round in 0..ROUNDS {
        let id = due(&leader, &sql).await;
        let (store, other) = (leader.clone(), client.clone());
        let (promoted, cancel) =
            concurrently(round, async move { store.promote_jobs(Fence::NONE, 10).await }, async move {
                other.cancel_job(id).await
            })
            .await;
        promoted.unwrap();
        assert_eq!(cancel.unwrap(), JobState::Cancelled);
        assert_eq!(state(&leader, id).await, JobState::Cancelled);
        assert_eq!(leader.promote_jobs(Fence::NONE, 10).await.unwrap().count, 0);
        assert!(claim(&leader, 10).await.is_empty(), "the cancelled job was claimed");
    }
    invariants::assert_consistent(&sql).await;
}

#[tokio::test]
async fn a_promotion_skips_a_job_that_is_being_cancelled() {
    let database = support::database();
    let store = open(database.url()).await;
    let client = support::connect(database.url()).await;
    let id = due(&store, &client).await;
    let holder = LockHolder::with_history_of(database.url(), id).await;
    let caller = store.clone();
    let cancel = tokio::spawn(async move { caller.cancel_job(id).await });
    until_waiting(&client, 1).await;
    assert_eq!(store.promote_jobs(Fence::NONE, 10).await.unwrap().count, 0, "the locked job is skipped");
    holder.rollback().await;
    assert_eq!(cancel.await.unwrap().unwrap(), JobState::Cancelled);
    assert_eq!(store.promote_jobs(Fence::NONE, 10).await.unwrap().count, 0);
    assert_eq!(state(&store, id).await, JobState::Cancelled);
    invariants::assert_consistent(&client).await;
}

#[tokio::test]
async fn a_cancel_that_waited_for_a_promotion_cancels_the_pending_job() {
    let database = support::database();
    let store = open(database.url()).await;
    let client = support::connect(database.url()).await;
    let id = due(&store, &client).await;
    // A promotion writes only the row itself, so a trigger stops it in that write.
    client
        .batch_execute(
            "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END';
             CREATE TRIGGER stop BEFORE UPDATE ON orchestrix.job FOR EACH ROW EXECUTE FUNCTION stop();",
        )
        .await
        .unwrap();
    let holder = LockHolder::with(database.url(), "SELECT pg_advisory_xact_lock(1)").await;
    let caller = store.clone();
    let promotion = tokio::spawn(async move { caller.promote_jobs(Fence::NONE, 10).await });
    until_waiting(&client, 1).await;
    let caller = store.clone();
    let cancel = tokio::spawn(async move { caller.cancel_job(id).await });
    until_waiting(&client, 2).await;
    holder.rollback().await;
    assert_eq!(promotion.await.unwrap().unwrap().count, 1);
    assert_eq!(cancel.await.unwrap().unwrap(), JobState::Cancelled);
    assert_eq!(state(&store, id).await, JobState::Cancelled);
    assert!(claim(&store, 10).await.is_empty());
    invariants::assert_consistent(&client).await;
}
