//! A cancel against whatever else happens to the job at the same time.

use orchestrix_core::{Event, IllegalTransition, JobState, NewJob, Start};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{Fence, FinishError, Outcome, Result, StoreError, prelude::*};

use crate::{
    books,
    jobs::*,
    locks::{Holder, until_waiting},
    support,
};

const ROUNDS: usize = 40;

fn too_late(answer: &Result<JobState>) -> bool {
    matches!(
        answer,
        Err(StoreError::IllegalTransition(IllegalTransition { from: JobState::Completed, event: Event::Cancel }))
    )
}

/// Runs two calls at once, in turns beginning with the one and the other.
async fn at_once<A: Send + 'static, B: Send + 'static>(
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
async fn a_success_stands_and_a_cancel_is_told_whether_it_came_in_time_to_ask() {
    let database = support::database();
    let [worker, client]: [PostgresStore; 2] = open_many(database.url()).await;
    for round in 0..ROUNDS {
        let token = start(&worker, job("t")).await.token;
        let (store, other) = (worker.clone(), client.clone());
        let (end, cancel) = at_once(round, async move { finish(&store, token, Outcome::DONE).await }, async move {
            other.cancel_job(token.job).await
        })
        .await;
        assert_eq!(end, Ok(JobState::Completed));
        assert!(matches!(cancel, Ok(JobState::Running)) || too_late(&cancel), "{cancel:?}");
        assert_eq!(state(&worker, token.job).await, JobState::Completed);
    }
    books::assert_balanced(&support::connect(database.url()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_never_brings_back_a_job_whose_cancel_was_accepted() {
    let database = support::database();
    let [worker, client]: [PostgresStore; 2] = open_many(database.url()).await;
    for round in 0..ROUNDS {
        let token = start(&worker, job("t")).await.token;
        let (store, other) = (worker.clone(), client.clone());
        let (end, cancel) =
            at_once(round, async move { finish(&store, token, Outcome::fail("once")).await }, async move {
                other.cancel_job(token.job).await
            })
            .await;
        // Asked in time, the failure ends the job; too late, the cancel finds it waiting for its next attempt.
        let expected = match cancel.expect("a job that can be cancelled") {
            JobState::Running => Ok(JobState::Cancelled),
            JobState::Cancelled => Ok(JobState::Retrying),
            other => panic!("a cancel that led to {other}"),
        };
        assert_eq!(end, expected);
        let job = get(&worker, token.job).await;
        assert_eq!((job.state, job.attempts, job.attempt_log.len()), (JobState::Cancelled, 1, 1));
    }
    books::assert_balanced(&support::connect(database.url()).await).await;
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
            at_once(round, async move { claim(&store, 10).await }, async move { other.cancel_job(id).await }).await;
        claims += claimed.len();
        match cancel.expect("a job that can be cancelled") {
            JobState::Cancelled => {
                assert!(claimed.is_empty(), "cancelled and yet handed out");
                assert_eq!(state(&worker, id).await, JobState::Cancelled);
            }
            JobState::Running => {
                assert_eq!(claimed.len(), 1);
                assert!(get(&worker, id).await.cancel_requested);
                assert_eq!(finish(&worker, claimed[0].token, Outcome::Cancelled).await, Ok(JobState::Cancelled));
            }
            other => panic!("a cancel that led to {other}"),
        }
    }
    println!("{claims} of {ROUNDS} were claimed");
    books::assert_balanced(&support::connect(database.url()).await).await;
}

#[tokio::test]
async fn a_success_that_waited_for_a_cancel_request_stands() {
    let database = support::database();
    let store = open(database.url()).await;
    let client = support::connect(database.url()).await;
    for (outcome, expected) in [(Outcome::DONE, JobState::Completed), (Outcome::fail("x"), JobState::Cancelled)] {
        let token = start(&store, job("t")).await.token;
        let request = Holder::with(database.url(), "UPDATE orchestrix.job SET cancel_requested = true").await;
        let ours = store.clone();
        let end = tokio::spawn(async move { finish(&ours, token, outcome).await });
        until_waiting(&client, 1).await;
        request.commit().await;
        assert_eq!(end.await.unwrap(), Ok(expected), "a failure is decided anew, with the request in view");
        assert_eq!(state(&store, token.job).await, expected);
    }
    books::assert_balanced(&client).await;
}

#[tokio::test]
async fn a_cancel_that_waited_for_a_success_is_told_that_it_is_too_late() {
    let database = support::database();
    let store = open(database.url()).await;
    let client = support::connect(database.url()).await;
    let token = start(&store, job("t")).await.token;
    let holder = Holder::with_history_of(database.url(), token.job).await;
    let ours = store.clone();
    let end = tokio::spawn(async move { finish(&ours, token, Outcome::DONE).await });
    until_waiting(&client, 1).await;
    let ours = store.clone();
    let cancel = tokio::spawn(async move { ours.cancel_job(token.job).await });
    until_waiting(&client, 2).await;
    holder.rollback().await;
    assert_eq!(end.await.unwrap(), Ok(JobState::Completed));
    let cancel = cancel.await.unwrap();
    assert!(too_late(&cancel), "{cancel:?}");
    assert_eq!(state(&store, token.job).await, JobState::Completed);
    books::assert_balanced(&client).await;
}

#[tokio::test]
async fn a_verdict_that_waited_for_a_cancelled_and_redriven_job_is_refused() {
    let database = support::database();
    let store = open(database.url()).await;
    let client = support::connect(database.url()).await;
    let token = start(&store, job("t")).await.token;
    store.cancel_job(token.job).await.unwrap();
    // The worker confirms the cancel, and is stopped while it does.
    let holder = Holder::with_history_of(database.url(), token.job).await;
    let ours = store.clone();
    let confirm = tokio::spawn(async move { finish(&ours, token, Outcome::Cancelled).await });
    until_waiting(&client, 1).await;
    let ours = store.clone();
    let success = tokio::spawn(async move { finish(&ours, token, Outcome::DONE).await });
    until_waiting(&client, 2).await;
    holder.rollback().await;
    assert_eq!(confirm.await.unwrap(), Ok(JobState::Cancelled));
    assert_eq!(success.await.unwrap(), Err(FinishError::LeaseLost));
    assert_eq!(store.retry_job(token.job).await.unwrap(), JobState::Pending);
    assert_eq!(finish(&store, token, Outcome::DONE).await, Err(FinishError::LeaseLost));
    assert_eq!(state(&store, token.job).await, JobState::Pending);
    books::assert_balanced(&client).await;
}

/// A scheduled job whose time has come.
async fn due(store: &PostgresStore, client: &tokio_postgres::Client) -> orchestrix_core::JobId {
    let later = Start::After(std::time::Duration::from_secs(3600));
    let id = enqueue(store, NewJob { start: later, ..job("t") }).await;
    let sql = "UPDATE orchestrix.job SET eligible_at = now() - interval '1 second' WHERE id = $1";
    client.execute(sql, &[&id.as_uuid()]).await.unwrap();
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_promoted_and_cancelled_at_once_stays_cancelled() {
    let database = support::database();
    let [leader, client]: [PostgresStore; 2] = open_many(database.url()).await;
    let sql = support::connect(database.url()).await;
    for round in 0..ROUNDS {
        let id = due(&leader, &sql).await;
        let (store, other) = (leader.clone(), client.clone());
        let (promoted, cancel) = at_once(round, async move { store.promote_jobs(Fence::NONE, 10).await }, async move {
            other.cancel_job(id).await
        })
        .await;
        promoted.unwrap();
        assert_eq!(cancel.unwrap(), JobState::Cancelled);
        assert_eq!(state(&leader, id).await, JobState::Cancelled);
        assert_eq!(leader.promote_jobs(Fence::NONE, 10).await.unwrap().count, 0);
        assert!(claim(&leader, 10).await.is_empty(), "it came back");
    }
    books::assert_balanced(&sql).await;
}

#[tokio::test]
async fn a_promotion_passes_over_a_job_that_is_just_being_cancelled() {
    let database = support::database();
    let store = open(database.url()).await;
    let client = support::connect(database.url()).await;
    let id = due(&store, &client).await;
    let holder = Holder::with_history_of(database.url(), id).await;
    let ours = store.clone();
    let cancel = tokio::spawn(async move { ours.cancel_job(id).await });
    until_waiting(&client, 1).await;
    assert_eq!(store.promote_jobs(Fence::NONE, 10).await.unwrap().count, 0, "neither waited for nor promoted");
    holder.rollback().await;
    assert_eq!(cancel.await.unwrap().unwrap(), JobState::Cancelled);
    assert_eq!(store.promote_jobs(Fence::NONE, 10).await.unwrap().count, 0);
    assert_eq!(state(&store, id).await, JobState::Cancelled);
    books::assert_balanced(&client).await;
}

#[tokio::test]
async fn a_cancel_that_waited_for_a_promotion_cancels_the_pending_job() {
    let database = support::database();
    let store = open(database.url()).await;
    let client = support::connect(database.url()).await;
    let id = due(&store, &client).await;
    // A promotion writes nothing that could be locked behind the row itself, so it is stopped in the row's own write.
    client
        .batch_execute(
            "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END';
             CREATE TRIGGER stop BEFORE UPDATE ON orchestrix.job FOR EACH ROW EXECUTE FUNCTION stop();",
        )
        .await
        .unwrap();
    let holder = Holder::with(database.url(), "SELECT pg_advisory_xact_lock(1)").await;
    let ours = store.clone();
    let promotion = tokio::spawn(async move { ours.promote_jobs(Fence::NONE, 10).await });
    until_waiting(&client, 1).await;
    let ours = store.clone();
    let cancel = tokio::spawn(async move { ours.cancel_job(id).await });
    until_waiting(&client, 2).await;
    holder.rollback().await;
    assert_eq!(promotion.await.unwrap().unwrap().count, 1);
    assert_eq!(cancel.await.unwrap().unwrap(), JobState::Cancelled);
    assert_eq!(state(&store, id).await, JobState::Cancelled);
    assert!(claim(&store, 10).await.is_empty());
    books::assert_balanced(&client).await;
}
