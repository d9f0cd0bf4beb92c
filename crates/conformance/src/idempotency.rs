//! Idempotency keys: one job per key, tenant and type, for ever.

use orchestrix_core::{JobId, JobState, Json, NewJob, Tenant};

use super::{Harness, fixture::*};
use orchestrix_store::{Enqueued, JobFilter, Outcome, Result, StoreError};

fn keyed(text: &str) -> NewJob {
    NewJob { idempotency_key: key(text), ..job("t") }
}

fn reused<T>(result: Result<T>) -> JobId {
    match result {
        Err(StoreError::IdempotencyKeyReused { existing }) => existing,
        Err(error) => panic!("failed with another error: {error:?}"),
        Ok(_) => panic!("the key was accepted for a different request"),
    }
}

pub(super) async fn a_repeat_returns_the_first_job_and_its_current_state(h: &Harness) {
    let first = h.store.enqueue_job(keyed("k")).await.expect("a valid job");
    assert!(!first.duplicate);
    let repeat = || async { h.store.enqueue_job(keyed("k")).await.expect("a repeat") };
    let again = |state| Enqueued { id: first.id, state, duplicate: true };
    assert_eq!(repeat().await, again(JobState::Pending));
    let claimed = h.claim_one().await;
    assert_eq!(repeat().await, again(JobState::Running));
    h.end(&claimed, Outcome::DONE).await;
    assert_eq!(repeat().await, again(JobState::Completed));
    assert_eq!(h.listed(&JobFilter::default()).await, [first.id]);
}

pub(super) async fn a_different_request_with_a_known_key_is_refused(h: &Harness) {
    let first = h.enqueue(keyed("k")).await;
    for different in [
        NewJob { payload: Json::trusted("1"), ..keyed("k") },
        NewJob { priority: priority(1), ..keyed("k") },
        NewJob { queue: queue("other"), ..keyed("k") },
    ] {
        assert_eq!(reused(h.store.enqueue_job(different).await), first);
    }
    assert_eq!(h.listed(&JobFilter::default()).await, [first]);
}

pub(super) async fn payload_formatting_does_not_matter(h: &Harness) {
    let formatted = |text: &str| NewJob { payload: Json::trusted(text), ..keyed("k") };
    let first = h.enqueue(formatted(r#"{"a": 1, "b": 2}"#)).await;
    assert_eq!(h.enqueue(formatted(r#"{"b":2,"a":1}"#)).await, first);
}

pub(super) async fn keys_are_separate_per_tenant_and_type(h: &Harness) {
    let requests = [
        keyed("k"),
        NewJob { tenant: Tenant::trusted("acme"), ..keyed("k") },
        NewJob { job_type: job_type("u"), ..keyed("k") },
    ];
    for request in requests.clone() {
        assert!(!h.store.enqueue_job(request).await.expect("a valid job").duplicate);
    }
    for request in requests {
        assert!(h.store.enqueue_job(request).await.expect("a repeat").duplicate);
    }
    assert_eq!(h.listed(&JobFilter::default()).await.len(), 3);
}

pub(super) async fn jobs_without_a_key_are_never_duplicates(h: &Harness) {
    assert_ne!(h.enqueue(job("t")).await, h.enqueue(job("t")).await);
}

pub(super) async fn a_repeat_within_one_call_is_the_same_job(h: &Harness) {
    let enqueued = h.store.enqueue_jobs(vec![keyed("k"), job("u"), keyed("k")]).await.expect("valid jobs");
    assert_eq!(enqueued[0].id, enqueued[2].id);
    assert_eq!(enqueued.iter().map(|job| job.duplicate).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(enqueued[2].state, JobState::Pending);
    assert_eq!(h.listed(&JobFilter::default()).await.len(), 2);
}

pub(super) async fn two_requests_with_one_key_refuse_their_call(h: &Harness) {
    reused(h.store.enqueue_jobs(vec![keyed("k"), NewJob { priority: priority(1), ..keyed("k") }]).await);
    assert_eq!(h.listed(&JobFilter::default()).await, []);
    // The key is still free.
    assert!(!h.store.enqueue_job(NewJob { priority: priority(2), ..keyed("k") }).await.expect("a valid job").duplicate);
}

pub(super) async fn one_reused_key_refuses_the_whole_call(h: &Harness) {
    let first = h.enqueue(keyed("k")).await;
    let jobs = vec![job("u"), NewJob { priority: priority(1), ..keyed("k") }];
    assert_eq!(reused(h.store.enqueue_jobs(jobs).await), first);
    assert_eq!(h.listed(&JobFilter::default()).await, [first]);
}

pub(super) async fn of_several_reused_keys_the_first_of_the_call_is_named(h: &Harness) {
    let keys: Vec<String> = (0..20).map(|i| format!("k{i}")).collect();
    let other = |key: &String| NewJob { priority: priority(1), ..keyed(key) };
    let first = h.enqueue_many(keys.iter().map(|key| keyed(key)).collect()).await;
    assert_eq!(reused(h.store.enqueue_jobs(keys.iter().map(other).collect()).await), first[0]);
    assert_eq!(reused(h.store.enqueue_jobs(keys.iter().rev().map(other).collect()).await), first[19]);
}

pub(super) async fn a_repeated_call_returns_the_same_jobs(h: &Harness) {
    let jobs = || {
        vec![
            keyed("a"),
            keyed("b"),
            NewJob { depends_on: vec![reference("r")], ..keyed("c") },
            NewJob { reference: Some("r".into()), ..keyed("d") },
        ]
    };
    let first = h.enqueue_many(jobs()).await;
    let again = h.store.enqueue_jobs(jobs()).await.expect("a repeat");
    assert_eq!(again.iter().map(|job| job.id).collect::<Vec<_>>(), first);
    assert!(again.iter().all(|job| job.duplicate));
}

pub(super) async fn a_reference_to_a_duplicate_means_the_existing_job(h: &Harness) {
    let parent = || NewJob { reference: Some("p".into()), ..keyed("k") };
    let first = h.enqueue(parent()).await;
    let jobs = vec![NewJob { depends_on: vec![reference("p")], ..job("child") }, parent()];
    let enqueued = h.store.enqueue_jobs(jobs.clone()).await.expect("a graph");
    assert_eq!((enqueued[1].id, enqueued[0].state), (first, JobState::Blocked));
    assert_eq!(h.job(enqueued[0].id).await.depends_on, [first]);
    let claimed = h.claim_one().await;
    h.end(&claimed, Outcome::DONE).await;
    assert_eq!(h.state(enqueued[0].id).await, JobState::Pending);
    assert_eq!(h.store.enqueue_jobs(jobs).await.expect("a graph")[0].state, JobState::Pending);
}

pub(super) async fn a_key_outlives_its_job_and_keeps_its_final_state(h: &Harness) {
    let done = h.start(keyed("done")).await;
    h.end(&done, Outcome::DONE).await;
    let dead = h.dead(keyed("dead")).await;
    h.prune_finished().await;
    assert_eq!(h.store.job(done.id()).await.expect("a store that answers"), None);
    let answer = h.store.enqueue_job(keyed("done")).await.expect("a repeat");
    assert_eq!(answer, Enqueued { id: done.id(), state: JobState::Completed, duplicate: true });
    let answer = h.store.enqueue_jobs(vec![keyed("dead")]).await.expect("a repeat");
    assert_eq!(answer, [Enqueued { id: dead, state: JobState::Dead, duplicate: true }]);
    assert_eq!(reused(h.store.enqueue_job(NewJob { priority: priority(1), ..keyed("done") }).await), done.id());
}

pub(super) async fn a_repeat_is_answered_even_after_its_parent_was_pruned(h: &Harness) {
    let parent = h.start(job("parent")).await;
    h.end(&parent, Outcome::DONE).await;
    let child = NewJob { idempotency_key: key("k"), ..child_of([parent.id()]) };
    let first = h.enqueue(child.clone()).await;
    h.prune_finished().await;
    let answer = h.store.enqueue_job(child).await.expect("a repeat");
    assert_eq!(answer, Enqueued { id: first, state: JobState::Pending, duplicate: true });
}
