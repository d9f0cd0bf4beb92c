//! Concurrent calls.

use std::{collections::HashSet, future::Future, sync::Arc};

use orchestrix_core::{JobState, NewJob, OnDependencyFailure};
use tokio::{sync::Barrier, task::JoinSet};

use super::{Harness, fixture::*};
use orchestrix_store::{ClaimRequest, Enqueued, Fence, FinishError, JobFilter, Outcome, OutcomeReport, Store};

/// Runs `n` tasks concurrently and returns their results.
async fn together<T, F>(n: usize, h: &Harness, task: impl Fn(usize, Arc<dyn Store>) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let barrier = Arc::new(Barrier::new(n));
    let mut tasks = JoinSet::new();
    for i in 0..n {
        let (barrier, work) = (barrier.clone(), task(i, h.store.clone()));
        tasks.spawn(async move {
            barrier.wait().await;
            work.await
        });
    }
    tasks.join_all().await
}

pub(super) async fn sixteen_concurrent_workers_claim_each_of_a_thousand_jobs_once(h: &Harness) {
    h.enqueue_many(vec![job("t"); 1_000]).await;
    let claims = together(16, h, |i, store| async move {
        let request = ClaimRequest::any(worker(&format!("w{i}")), 7);
        let mut mine = Vec::new();
        // Stops after two empty claims: a store may skip jobs that another claim has locked.
        let mut empty = 0;
        while empty < 2 {
            let claimed = store.claim_jobs(&request).await.expect("a valid request");
            empty = if claimed.is_empty() { empty + 1 } else { 0 };
            mine.extend(claimed.into_iter().map(|claimed| claimed.token));
        }
        mine
    });
    let mut tokens: Vec<_> = claims.await.into_iter().flatten().collect();
    tokens.extend(h.claim_all().await.into_iter().map(|claimed| claimed.token));
    assert_eq!(tokens.len(), 1_000, "each job should be claimed once");
    assert_eq!(tokens.iter().map(|token| token.job).collect::<HashSet<_>>().len(), 1_000);
    assert!(tokens.iter().all(|token| token.counter == 1));
}

pub(super) async fn sixty_four_concurrent_requests_with_one_key_make_one_job(h: &Harness) {
    let answers = together(64, h, |_, store| async move {
        let keyed = NewJob { idempotency_key: key("k"), ..job("t") };
        store.enqueue_job(keyed).await.expect("a valid job")
    });
    let answers: Vec<Enqueued> = answers.await;
    assert!(answers.iter().all(|answer| answer.id == answers[0].id), "all requests should return one job");
    assert_eq!(answers.iter().filter(|answer| !answer.duplicate).count(), 1, "exactly one request is the first");
    assert_eq!(h.listed(&JobFilter::default()).await, [answers[0].id]);
}

pub(super) async fn of_many_concurrent_outcomes_with_one_token_one_counts(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let answers = together(16, h, move |i, store| async move {
        let outcome = if i % 2 == 0 { Outcome::DONE } else { Outcome::fail(i.to_string()) };
        store
            .finish_attempts(vec![OutcomeReport { token: claimed.token, outcome }])
            .await
            .expect("a store that answers")
            .remove(0)
    });
    let answers = answers.await;
    let state = h.state(claimed.token.job).await;
    let accepted = answers.iter().filter(|answer| **answer == Ok(state)).count();
    let refused = answers.iter().filter(|answer| **answer == Err(FinishError::LeaseLost)).count();
    assert_eq!(accepted + refused, 16);
    // All successes are the same outcome; every failure is a different one.
    assert_eq!(accepted, if state == JobState::Completed { 8 } else { 1 });
    assert_eq!(h.job(claimed.token.job).await.attempts, 1);
}

pub(super) async fn parents_that_finish_concurrently_unblock_their_child_once(h: &Harness) {
    let parents = h.enqueue_many(vec![job("parent"); 16]).await;
    let ids: [_; 16] = parents.try_into().expect("sixteen ids");
    let child = h.enqueue(NewJob { on_dependency_failure: OnDependencyFailure::Run, ..child_of(ids) }).await;
    let claimed = h.claim_all().await;
    let answers = together(16, h, |i, store| {
        let token = claimed[i].token;
        let outcome = if i % 4 == 0 { fatal("no use") } else { Outcome::DONE };
        async move {
            store.finish_attempts(vec![OutcomeReport { token, outcome }]).await.expect("a store that answers").remove(0)
        }
    });
    assert!(answers.await.iter().all(Result::is_ok));
    // A store may leave parents that finished concurrently to the sweep.
    h.store.unblock_jobs(Fence::NONE, 1_000).await.expect("a valid limit");
    assert_eq!(h.claim_one().await.id(), child);
}

pub(super) async fn a_lease_is_either_reaped_or_finished(h: &Harness) {
    h.enqueue_many(vec![job("t"); 64]).await;
    let claimed = h.claim_all().await;
    h.advance(secs(30)).await;
    let answers = together(65, h, |i, store| {
        let token = claimed.get(i).map(|claimed| claimed.token);
        async move {
            let Some(token) = token else {
                store.reap_leases(Fence::NONE, 1_000, 3).await.expect("a valid limit");
                return None;
            };
            let items = vec![OutcomeReport { token, outcome: Outcome::DONE }];
            Some((token.job, store.finish_attempts(items).await.expect("a store that answers").remove(0)))
        }
    });
    for (id, answer) in answers.await.into_iter().flatten() {
        let expected = match answer {
            Ok(state) => state,
            Err(_) => JobState::Pending,
        };
        let job = h.job(id).await;
        assert_eq!((job.state, job.attempts), (expected, 1));
    }
}
