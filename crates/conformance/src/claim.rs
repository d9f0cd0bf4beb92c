//! Claims: which jobs a worker gets, in which order, and what a lease contains.

use std::collections::HashSet;

use orchestrix_core::{JobId, JobState, Json, NewJob, Progress, Start, Tenant};

use super::{Harness, fixture::*};
use orchestrix_store::{ClaimRequest, ClaimedJob, Outcome, ProgressUpdate, Queues};

fn ids(claimed: &[ClaimedJob]) -> Vec<JobId> {
    claimed.iter().map(ClaimedJob::id).collect()
}

fn request(queues: &[&str], job_types: Option<&[&str]>) -> ClaimRequest {
    ClaimRequest {
        queues: Queues::Named(queues.iter().map(|name| queue(name)).collect()),
        job_types: job_types.map(|names| names.iter().map(|name| job_type(name)).collect()),
        ..ClaimRequest::any(worker("w"), 100)
    }
}

pub(super) async fn a_claim_returns_everything_that_a_worker_needs(h: &Harness) {
    let request = NewJob {
        payload: Json::trusted("[1]"),
        queue: queue("q"),
        tenant: Tenant::trusted("acme"),
        priority: priority(3),
        max_attempts: 4,
        timeout: Some(secs(300)),
        lease: secs(45),
        correlation_id: Some("order 7".into()),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        ..job("t")
    };
    let id = h.enqueue(request.clone()).await;
    let eligible_at = h.now().await;
    h.advance(secs(5)).await;
    let claimed = h.claim_one().await;
    assert_eq!((claimed.id(), claimed.token.counter), (id, 1));
    assert_eq!((claimed.job_type, claimed.queue, claimed.tenant), (request.job_type, request.queue, request.tenant));
    assert_eq!((claimed.priority, claimed.payload), (request.priority, request.payload));
    assert_eq!((claimed.attempt, claimed.max_attempts, claimed.eligible_at), (1, 4, eligible_at));
    assert_eq!((claimed.lease_expires_at, claimed.lease), (h.now().await + secs(45), secs(45)));
    assert_eq!((claimed.timeout, claimed.checkpoint), (request.timeout, None));
    assert_eq!((claimed.correlation_id, claimed.traceparent), (request.correlation_id, request.traceparent));
    assert_eq!(claimed.dependency_results, []);
}

pub(super) async fn a_claimed_job_is_running_and_owned_by_its_worker(h: &Harness) {
    let id = h.enqueue(job("t")).await;
    h.advance(secs(5)).await;
    let now = h.now().await;
    h.claim(&ClaimRequest::any(worker("ann"), 1)).await;
    let job = h.job(id).await;
    assert_eq!((job.state, job.worker, job.leases), (JobState::Running, Some(worker("ann")), 1));
    assert_eq!((job.started_at, job.updated_at, job.lease_expires_at), (Some(now), now, Some(now + secs(30))));
    assert_eq!((job.attempts, job.eligible_at), (0, now - secs(5)));
    assert_eq!(h.claim_all().await, [], "a running job cannot be claimed");
}

pub(super) async fn an_empty_store_has_nothing_to_claim(h: &Harness) {
    assert_eq!(h.claim_all().await, []);
}

pub(super) async fn only_pending_jobs_are_claimed(h: &Harness) {
    let running = h.start(job("running")).await;
    let failed = h.start(job("retrying")).await;
    h.end(&failed, Outcome::fail("not yet")).await;
    h.enqueue(NewJob { hold: true, ..job("created") }).await;
    h.enqueue(child_of([running.id()])).await;
    h.enqueue(NewJob { start: Start::After(secs(1)), ..job("scheduled") }).await;
    let done = h.start(job("done")).await;
    h.end(&done, Outcome::DONE).await;
    h.dead(job("dead")).await;
    let cancelled = h.enqueue(job("cancelled")).await;
    h.store.cancel_job(cancelled).await.expect("a waiting job");
    assert_eq!(h.claim_all().await, []);
}

pub(super) async fn higher_priority_comes_first_then_longer_eligible_then_lower_id(h: &Harness) {
    let low = h.enqueue(NewJob { priority: priority(-1), ..job("t") }).await;
    let late = NewJob { start: Start::After(secs(2)), ..job("t") };
    let late = h.enqueue(late).await;
    let mut twins = h.enqueue_many(vec![job("t"), job("t"), job("t")]).await;
    twins.sort_unstable();
    h.advance(secs(1)).await;
    let younger = h.enqueue(job("t")).await;
    let high = h.enqueue(NewJob { priority: priority(1000), ..job("t") }).await;
    h.advance(secs(1)).await;
    h.promote().await;
    assert_eq!(ids(&h.claim_all().await), [high, twins[0], twins[1], twins[2], younger, late, low]);
}

pub(super) async fn otherwise_equal_jobs_are_claimed_in_the_order_they_were_enqueued(h: &Harness) {
    let mut given = Vec::new();
    for _ in 0..3 {
        given.extend(h.enqueue_many(vec![job("t"); 20]).await);
        given.push(h.enqueue(job("t")).await);
    }
    assert_eq!(ids(&h.claim_all().await), given);
}

pub(super) async fn claim_order_spans_all_queues_and_types(h: &Harness) {
    let mut expected = Vec::new();
    for (i, (queue_name, type_name)) in
        [("a", "x"), ("b", "y"), ("c", "x"), ("a", "y"), ("b", "x")].into_iter().enumerate()
    {
        let value = i64::try_from(i % 2).expect("a small number");
        let id = h.enqueue(NewJob { queue: queue(queue_name), priority: priority(value), ..job(type_name) }).await;
        expected.push((i % 2 == 0, i, id));
        h.advance(secs(1)).await;
    }
    expected.sort_unstable();
    let expected: Vec<JobId> = expected.into_iter().map(|(_, _, id)| id).collect();
    let mut claimed = ids(&h.claim(&ClaimRequest { limit: 2, ..request(&["a", "b", "c"], None) }).await);
    claimed.extend(ids(&h.claim(&request(&["c", "b", "a"], Some(&["y", "x"]))).await));
    assert_eq!(claimed, expected);
}

pub(super) async fn a_worker_gets_only_the_queues_and_types_it_requests(h: &Harness) {
    let in_queue = |queue_name: &str, type_name: &str| NewJob { queue: queue(queue_name), ..job(type_name) };
    let ax = h.enqueue(in_queue("a", "x")).await;
    let by = h.enqueue(in_queue("b", "y")).await;
    let bx = h.enqueue(in_queue("b", "x")).await;
    assert_eq!(h.claim(&request(&["nowhere"], None)).await, []);
    assert_eq!(h.claim(&request(&[], None)).await, []);
    assert_eq!(h.claim(&request(&["a", "b"], Some(&[]))).await, []);
    assert_eq!(h.claim(&request(&["a"], Some(&["y"]))).await, []);
    assert_eq!(ids(&h.claim(&request(&["b"], Some(&["y"]))).await), [by]);
    let any_queue = ClaimRequest { job_types: Some(vec![job_type("x")]), ..ClaimRequest::any(worker("w"), 100) };
    let mut rest = ids(&h.claim(&any_queue).await);
    rest.sort_unstable();
    let mut expected = vec![ax, bx];
    expected.sort_unstable();
    assert_eq!(rest, expected);
}

pub(super) async fn a_queue_named_twice_yields_its_jobs_once(h: &Harness) {
    h.enqueue(NewJob { queue: queue("a"), ..job("x") }).await;
    assert_eq!(h.claim(&request(&["a", "a"], Some(&["x", "x"]))).await.len(), 1);
}

pub(super) async fn a_claim_returns_no_more_than_its_limit(h: &Harness) {
    h.enqueue_many(vec![job("t"); 5]).await;
    for expected in [2, 2, 1, 0] {
        assert_eq!(h.claim(&ClaimRequest::any(worker("w"), 2)).await.len(), expected);
    }
}

pub(super) async fn a_claim_returns_as_many_as_its_limit_while_there_are_enough(h: &Harness) {
    // Most jobs are in one of many lanes.
    for lane in 0..12 {
        h.enqueue(NewJob { queue: queue(&format!("q{lane}")), ..job("t") }).await;
    }
    let urgent = NewJob { priority: priority(1), ..job("urgent") };
    let urgent = h.enqueue_many(vec![urgent; 30]).await;
    let claimed = h.claim(&ClaimRequest::any(worker("w"), 20)).await;
    assert_eq!(ids(&claimed), urgent[..20]);
    let claimed = h.claim(&ClaimRequest::any(worker("w"), 20)).await;
    assert_eq!(claimed.len(), 20);
    assert_eq!(ids(&claimed[..10]), urgent[20..]);
    assert_eq!(h.claim(&ClaimRequest::any(worker("w"), 20)).await.len(), 2);
}

pub(super) async fn limits_out_of_range_are_refused(h: &Harness) {
    for limit in [0, ClaimRequest::MAX_LIMIT + 1] {
        assert_eq!(bad_fields(h.store.claim_jobs(&ClaimRequest::any(worker("w"), limit)).await), ["max"]);
    }
    let names = vec!["a"; ClaimRequest::MAX_NAMES + 1];
    assert_eq!(bad_fields(h.store.claim_jobs(&request(&names, Some(&names))).await), ["queues", "jobTypes"]);
}

pub(super) async fn every_lease_has_a_token_of_its_own(h: &Harness) {
    let id = h.enqueue(job("t")).await;
    let mut secrets = HashSet::new();
    for counter in 1..=5 {
        let claimed = h.claim_one().await;
        assert_eq!((claimed.id(), claimed.token.counter, claimed.attempt), (id, counter, 1));
        assert!(secrets.insert(claimed.token.secret), "two leases have the same secret");
        h.end(&claimed, Outcome::Release).await;
    }
    assert_eq!(h.job(id).await.leases, 5);
}

pub(super) async fn a_new_attempt_gets_the_checkpoint_and_starts_without_progress(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let progress = Progress { percent: Some(50.0), message: None };
    let update = ProgressUpdate { progress: Some(progress), checkpoint: Some(Json::trusted("7")) };
    h.store.record_progress(claimed.token, update).await.expect("a current token");
    h.end(&claimed, Outcome::fail("not yet")).await;
    let claimed = h.start_again(claimed.id()).await;
    assert_eq!((claimed.checkpoint, claimed.attempt), (Some(Json::trusted("7")), 2));
    assert_eq!(h.job(claimed.token.job).await.progress, None);
}

pub(super) async fn a_retried_job_is_claimed_after_older_ones(h: &Harness) {
    let first = h.start(job("first")).await;
    let second = h.enqueue(job("second")).await;
    h.advance(secs(1)).await;
    h.end(&first, Outcome::Release).await;
    assert_eq!(ids(&h.claim_all().await), [second, first.id()]);
}

pub(super) async fn an_expired_job_is_not_claimed_before_the_sweep_cancels_it(h: &Harness) {
    h.enqueue(NewJob { expires_at: Some(h.now().await + secs(5)), ..job("late") }).await;
    let in_time = h.enqueue(NewJob { expires_at: Some(h.now().await + secs(6)), ..job("in-time") }).await;
    h.advance(secs(5)).await;
    assert_eq!(h.claim_one().await.id(), in_time);
}

pub(super) async fn a_job_that_started_before_it_expired_can_be_claimed_again(h: &Harness) {
    let claimed = h.start(NewJob { expires_at: Some(h.now().await + secs(5)), ..job("t") }).await;
    h.end(&claimed, Outcome::Release).await;
    h.advance(secs(10)).await;
    assert_eq!(h.claim_one().await.id(), claimed.id());
}

pub(super) async fn a_job_behind_many_expired_ones_is_claimed(h: &Harness) {
    let expires_at = Some(h.now().await + secs(1));
    let late = NewJob { expires_at, priority: priority(1), ..job("t") };
    h.enqueue_many(vec![late; 2_500]).await;
    let behind = h.enqueue(job("t")).await;
    h.advance(secs(1)).await;
    // One at a time, since a larger claim scans more jobs.
    assert_eq!(ids(&h.claim(&ClaimRequest::any(worker("w"), 1)).await), [behind]);
}
