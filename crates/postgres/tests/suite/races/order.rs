//! Batches over the same jobs lock them in one order, whatever order they came in: nobody waits in a circle.
//!
//! The store sends a statement again that lost a deadlock, so an error would not show one. The server counts them.

use orchestrix_core::{JobState, LeaseToken};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{Fence, FinishError, LeaseStatus, Outcome, OutcomeReport, prelude::*};
use orchestrix_testkit::TestDatabase;
use rand::seq::SliceRandom;

use crate::{books, jobs::*, support};

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

/// Ends the stores, so that their sessions report what they counted, and fails if a deadlock was among it.
async fn assert_no_deadlock(database: &TestDatabase, stores: [PostgresStore; 2]) {
    drop(stores);
    let client = support::connect(database.url()).await;
    crate::locks::until(&client, "the stores' sessions have ended", |n| n == 0, SESSIONS).await;
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(client.query_one(sql, &[]).await.unwrap().get::<_, i64>(0), 0, "somebody waited in a circle");
    books::assert_balanced(&client).await;
}

const SESSIONS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'orchestrix'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_batches_of_successes_in_opposite_order_end_every_job_once() {
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
            let answers = answers.expect("no deadlock that shows");
            assert!(answers.iter().all(|answer| *answer == Ok(JobState::Completed)), "told twice, and answered alike");
        }
    }
    assert_no_deadlock(&database, stores).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_batches_of_different_verdicts_in_opposite_order_end_every_job_once() {
    let (database, stores) = two_stores().await;
    for _ in 0..ROUNDS {
        let tokens = start_many(&stores[0], &job("t"), TOKENS).await;
        let backwards: Vec<LeaseToken> = tokens.iter().rev().copied().collect();
        // Each attempt ends in one batch with a retry, in the other with death: one writes the row, one moves it away.
        let mixed = |i: usize| if i.is_multiple_of(2) { Outcome::fail("again") } else { fatal() };
        let batches = [batch(&tokens, mixed), batch(&backwards, mixed)];
        let answers = together(
            stores
                .clone()
                .into_iter()
                .zip(batches)
                .map(|(store, items)| async move { store.finish_attempts(items).await }),
        );
        let answers: Vec<_> =
            answers.await.into_iter().map(|answers| answers.expect("no deadlock that shows")).collect();
        for (one, other) in answers[0].iter().zip(answers[1].iter().rev()) {
            assert_eq!(
                [one, other].iter().filter(|answer| answer.is_ok()).count(),
                1,
                "one of the two outcomes counts"
            );
            assert!([one, other].contains(&&Err(FinishError::LeaseLost)));
        }
    }
    assert_no_deadlock(&database, stores).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_and_verdicts_on_the_same_jobs_in_any_order_never_wait_in_a_circle() {
    let (database, stores) = two_stores().await;
    for round in 0..ROUNDS {
        let tokens = start_many(&stores[0], &job("t"), TOKENS).await;
        let outcome = if round.is_multiple_of(2) { Outcome::DONE } else { fatal() };
        let items = batch(&shuffled(&tokens), |_| outcome.clone());
        let (ending, beating) = (stores[0].clone(), stores[1].clone());
        let lists = [shuffled(&tokens), shuffled(&tokens), shuffled(&tokens)];
        let end = tokio::spawn(async move { ending.finish_attempts(items).await });
        let beats = together(lists.map(|tokens| {
            let store = beating.clone();
            async move { store.extend_leases(&tokens).await }
        }));
        for beat in beats.await {
            let beat = beat.expect("no deadlock that shows");
            assert!(
                beat.iter()
                    .all(|status| matches!(status, LeaseStatus::Held(_) | LeaseStatus::Locked(_) | LeaseStatus::Lost))
            );
        }
        let answers = end.await.unwrap().expect("no deadlock that shows");
        assert!(answers.iter().all(Result::is_ok), "a heartbeat takes no lease away");
    }
    assert_no_deadlock(&database, stores).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reapers_and_verdicts_on_the_same_jobs_never_wait_in_a_circle() {
    let (database, stores) = two_stores().await;
    let client = support::connect(database.url()).await;
    for _ in 0..ROUNDS {
        let tokens = start_many(&stores[0], &job("t"), TOKENS).await;
        let sql = "UPDATE orchestrix.job SET lease_expires_at = now() - random() * interval '1 second'";
        client.execute(sql, &[]).await.unwrap();
        let items = batch(&shuffled(&tokens), |_| Outcome::DONE);
        let (ending, reaping) = (stores[0].clone(), stores[1].clone());
        let end = tokio::spawn(async move { ending.finish_attempts(items).await });
        let swept = reaping.reap_leases(Fence::NONE, TOKENS, 100).await.expect("no deadlock that shows");
        let answers = end.await.unwrap().expect("no deadlock that shows");
        let completed = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(swept.count + completed, TOKENS, "each lease was taken back or its attempt counted");
        // What was taken back would be in the way of the next round.
        let left = claim_all(&stores[0]).await;
        let items = batch(&left.iter().map(|claimed| claimed.token).collect::<Vec<_>>(), |_| Outcome::DONE);
        assert!(stores[0].finish_attempts(items).await.unwrap().iter().all(Result::is_ok));
    }
    assert_no_deadlock(&database, stores).await;
}
