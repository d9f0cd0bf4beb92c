//! Concurrent batches over the same jobs lock them in one order and never deadlock.
//!
//! The store retries a statement that lost a deadlock, so no error would show one. The server counts deadlocks.

use orchestrix_core::{JobState, LeaseToken};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{Fence, FinishError, LeaseStatus, Outcome, OutcomeReport, prelude::*};
use orchestrix_testkit::TestDatabase;
use rand::seq::SliceRandom;

use crate::{invariants, jobs::*, support};

const TOKENS: usize = 500;
const ROUNDS: usize = 12;

async fn two_stores() -> (TestDatabase, [PostgresStore; 2]) {
    let database = support::database();
    let stores = open_many(database.url()).await;
    (database, stores)
}

fn batch(tokens: &[LeaseToken], outcome: impl Fn(usize) -> Outcome) -> Vec<OutcomeReport> {
    tokens.iter().enumerate().map(|(i, token)| OutcomeReport { token: *token, outcome: outcome(i) }).collect()
}

fn shuffled(tokens: &[LeaseToken]) -> Vec<LeaseToken> {
    let mut tokens = tokens.to_vec();
    tokens.shuffle(&mut rand::rng());
    tokens
}

/// Drops the stores, so that their sessions report statistics, and asserts that these contain no deadlock.
async fn assert_no_deadlock(database: &TestDatabase, stores: [PostgresStore; 2]) {
    drop(stores);
    let client = support::connect(database.url()).await;
    crate::locks::until(&client, "the stores' sessions have ended", |n| n == 0, SESSIONS).await;
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0), 0, "the server counted a deadlock");
    invariants::assert_consistent(&client).await;
}

const SESSIONS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'orchestrix'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_batches_of_completions_in_opposite_order_complete_every_job_once() {
    let (database, stores) = two_stores().await;
    for _ in 0..ROUNDS {
        let tokens = start_many(&stores[0], &job("t"), TOKENS).await;
        let backwards: Vec<LeaseToken> = tokens.iter().rev().copied().collect();
        let batches = [batch(&tokens, |_| Outcome::DONE), batch(&backwards, |_| Outcome::DONE)];
        let answers = together(
            stores
                .clone()
                .into_iter()
                .zip(batches)
                .map(|(store, items)| async move { store.finish_attempts(items).await }),
        );
        for answers in answers.await {
            let answers = answers.expect("no deadlock");
            assert!(
                answers.iter().all(|answer| *answer == Ok(JobState::Completed)),
                "both reports get the same answer"
            );
        }
    }
    assert_no_deadlock(&database, stores).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_batches_of_different_outcomes_in_opposite_order_end_every_attempt_once() {
    let (database, stores) = two_stores().await;
    for _ in 0..ROUNDS {
        let tokens = start_many(&stores[0], &job("t"), TOKENS).await;
        let backwards: Vec<LeaseToken> = tokens.iter().rev().copied().collect();
        // Each attempt is retried by one batch and dies by the other: one updates the row, the other moves it.
        let mixed = |i: usize| if i.is_multiple_of(2) { Outcome::fail("again") } else { fatal() };
        let batches = [batch(&tokens, mixed), batch(&backwards, mixed)];
        let answers = together(
            stores
                .clone()
                .into_iter()
                .zip(batches)
                .map(|(store, items)| async move { store.finish_attempts(items).await }),
        );
        let answers: Vec<_> = answers.await.into_iter().map(|answers| answers.expect("no deadlock")).collect();
        for (one, other) in answers[0].iter().zip(answers[1].iter().rev()) {
            assert_eq!(
                [one, other].iter().filter(|answer| answer.is_ok()).count(),
                1,
                "exactly one of the two outcomes is accepted"
            );
            assert!([one, other].contains(&&Err(FinishError::LeaseLost)));
        }
    }
    assert_no_deadlock(&database, stores).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_and_outcomes_on_the_same_jobs_never_deadlock() {
    let (database, stores) = two_stores().await;
    for round in 0..ROUNDS {
        let tokens = start_many(&stores[0], &job("t"), TOKENS).await;
        let outcome = if round.is_multiple_of(2) { Outcome::DONE } else { fatal() };
        let items = batch(&shuffled(&tokens), |_| outcome.clone());
        let (finishing, extending) = (stores[0].clone(), stores[1].clone());
        let lists = [shuffled(&tokens), shuffled(&tokens), shuffled(&tokens)];
        let end = tokio::spawn(async move { finishing.finish_attempts(items).await });
        let beats = together(lists.map(|tokens| {
            let store = extending.clone();
            async move { store.extend_leases(&tokens).await }
        }));
        for beat in beats.await {
            let beat = beat.expect("no deadlock");
            assert!(
                beat.iter()
                    .all(|status| matches!(status, LeaseStatus::Held(_) | LeaseStatus::Locked(_) | LeaseStatus::Lost))
            );
        }
        let answers = end.await.unwrap().expect("no deadlock");
        assert!(answers.iter().all(Result::is_ok), "a heartbeat must not cost a lease");
    }
    assert_no_deadlock(&database, stores).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reapers_and_outcomes_on_the_same_jobs_never_deadlock() {
    let (database, stores) = two_stores().await;
    let client = support::connect(database.url()).await;
    for _ in 0..ROUNDS {
        let tokens = start_many(&stores[0], &job("t"), TOKENS).await;
        let sql = "UPDATE orchestrix.job SET lease_expires_at = now() - random() * interval '1 second'";
        client.execute(sql, &[]).await.unwrap();
        let items = batch(&shuffled(&tokens), |_| Outcome::DONE);
        let (finishing, reaping) = (stores[0].clone(), stores[1].clone());
        let end = tokio::spawn(async move { finishing.finish_attempts(items).await });
        let swept = reaping.reap_leases(Fence::NONE, TOKENS, 100).await.expect("no deadlock");
        let answers = end.await.unwrap().expect("no deadlock");
        let completed = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(swept.count + completed, TOKENS, "each lease was reaped or its attempt completed");
        // Completes the reaped jobs before the next round.
        let left = claim_all(&stores[0]).await;
        let items = batch(&left.iter().map(|claimed| claimed.token).collect::<Vec<_>>(), |_| Outcome::DONE);
        assert!(stores[0].finish_attempts(items).await.unwrap().iter().all(Result::is_ok));
    }
    assert_no_deadlock(&database, stores).await;
}
