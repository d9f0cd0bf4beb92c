//! Enqueue of one job: what is stored, in which state, and what is refused.

use std::time::Duration;

use orchestrix_core::{
    JobState, JobStatus, Json, LimitKey, NewJob, OnDependencyFailure, Resources, RetryPolicy, Start, Tag, Tenant,
};

use super::{Harness, fixture::*};
use orchestrix_store::JobFilter;

pub(super) async fn a_job_with_defaults_is_pending_at_once(h: &Harness) {
    let now = h.now().await;
    let enqueued = h.store.enqueue_job(NewJob::new(job_type("t"))).await.expect("a valid job");
    assert_eq!((enqueued.state, enqueued.duplicate), (JobState::Pending, false));
    let job = h.job(enqueued.id).await;
    assert_eq!((job.id, job.state, job.state.status()), (enqueued.id, JobState::Pending, JobStatus::Pending));
    assert_eq!((job.created_at, job.updated_at, job.eligible_at), (now, now, now));
    assert_eq!((job.queue.as_str(), job.tenant.as_str(), job.payload.as_str()), ("default", "default", "null"));
    assert_eq!((job.priority, job.attempts, job.max_attempts, job.losses), (priority(0), 0, 10, 0));
    assert_eq!((job.timeout, job.lease, job.retry), (None, secs(30), RetryPolicy::default()));
    assert_eq!((job.started_at, job.finished_at, job.expires_at, job.lease_expires_at), (None, None, None, None));
    assert_eq!((job.worker, job.leases, job.cancel_requested), (None, 0, false));
    assert_eq!((job.result, job.progress, job.checkpoint, job.reason), (None, None, None, None));
    assert_eq!((job.attempt_log, job.depends_on), (vec![], vec![]));
    assert_eq!((job.tags, job.correlation_id, job.traceparent, job.idempotency_key), (vec![], None, None, None));
}

pub(super) async fn every_field_of_a_request_is_stored(h: &Harness) {
    let parent = h.enqueue(NewJob { tenant: Tenant::trusted("acme"), ..job("parent") }).await;
    let mut resources = Resources::default();
    resources.set(LimitKey::trusted("cpu"), 0.5).expect("a valid amount");
    let request = NewJob {
        payload: Json::trusted(r#"{"to":"a@b.c"}"#),
        idempotency_key: key("clé/1"),
        queue: queue("mail"),
        priority: priority(-7),
        max_attempts: 3,
        timeout: Some(secs(300)),
        lease: secs(45),
        retry: RetryPolicy { base: secs(2), multiplier: 1.5, max: secs(60), jitter: 0.25 },
        on_dependency_failure: OnDependencyFailure::Hold,
        tenant: Tenant::trusted("acme"),
        concurrency_key: Some(LimitKey::trusted("customer-42")),
        rate_limit_key: Some(LimitKey::trusted("smtp")),
        resources,
        tags: vec![Tag::trusted("billing"), Tag::trusted("a:b")],
        correlation_id: Some("order 7".into()),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        expires_at: Some(h.now().await + secs(3600)),
        ..child_of([parent])
    };
    let id = h.enqueue(request.clone()).await;
    let job = h.job(id).await;
    assert_eq!(
        (job.job_type, job.payload, job.idempotency_key),
        (request.job_type, request.payload, request.idempotency_key)
    );
    assert_eq!((job.queue, job.priority, job.max_attempts), (request.queue, request.priority, request.max_attempts));
    assert_eq!((job.timeout, job.lease, job.retry), (request.timeout, request.lease, request.retry));
    assert_eq!((job.depends_on, job.on_dependency_failure), (vec![parent], request.on_dependency_failure));
    assert_eq!((job.tenant, job.concurrency_key), (request.tenant, request.concurrency_key));
    assert_eq!((job.rate_limit_key, job.resources), (request.rate_limit_key, request.resources));
    assert_eq!((job.tags, job.correlation_id), (request.tags, request.correlation_id));
    assert_eq!((job.traceparent, job.expires_at), (request.traceparent, request.expires_at));
}

pub(super) async fn a_payload_is_kept_byte_for_byte(h: &Harness) {
    for text in [r#"{"b":1.0, "a":"\u0000","b":1e400}"#, "\"é\u{1f980}\"", "-0.0", "[ ]", "12345678901234567890123"] {
        let claimed = h.start(NewJob { payload: Json::trusted(text), ..job("t") }).await;
        assert_eq!(claimed.payload.as_str(), text);
        assert_eq!(h.job(claimed.id()).await.payload.as_str(), text);
    }
}

pub(super) async fn a_delayed_job_is_scheduled_for_its_delay_from_now(h: &Harness) {
    let id = h.enqueue(NewJob { start: Start::After(secs(60)), ..job("t") }).await;
    let job = h.job(id).await;
    assert_eq!((job.state, job.eligible_at), (JobState::Scheduled, h.now().await + secs(60)));
}

pub(super) async fn a_zero_delay_is_no_delay(h: &Harness) {
    let id = h.enqueue(NewJob { start: Start::After(Duration::ZERO), ..job("t") }).await;
    assert_eq!(h.state(id).await, JobState::Pending);
}

pub(super) async fn a_job_with_a_future_run_time_is_scheduled_for_it(h: &Harness) {
    let time = h.now().await + secs(86_400);
    let id = h.enqueue(NewJob { start: Start::At(time), ..job("t") }).await;
    let job = h.job(id).await;
    assert_eq!((job.state, job.eligible_at), (JobState::Scheduled, time));
}

pub(super) async fn a_job_with_a_past_run_time_is_eligible_now(h: &Harness) {
    let now = h.now().await;
    for time in [now, now - secs(3600)] {
        let id = h.enqueue(NewJob { start: Start::At(time), ..job("t") }).await;
        let job = h.job(id).await;
        assert_eq!((job.state, job.eligible_at), (JobState::Pending, now));
    }
}

pub(super) async fn a_held_job_is_created_whatever_else_it_waits_for(h: &Harness) {
    let parent = h.enqueue(job("parent")).await;
    for start in [Start::Now, Start::After(secs(60))] {
        for request in [job("t"), child_of([parent])] {
            let enqueued = h.store.enqueue_job(NewJob { hold: true, start, ..request }).await.expect("a valid job");
            assert_eq!(enqueued.state, JobState::Created);
            assert_eq!(h.state(enqueued.id).await, JobState::Created);
        }
    }
}

pub(super) async fn times_are_truncated_to_microseconds(h: &Harness) {
    let time = (h.now().await + secs(60)) + Duration::from_nanos(999);
    let delay = Duration::from_nanos(60_000_000_999);
    let at = h.enqueue(NewJob { start: Start::At(time), expires_at: Some(time), ..job("t") }).await;
    let after = h.enqueue(NewJob { start: Start::After(delay), ..job("t") }).await;
    let expected = h.now().await + secs(60);
    let job = h.job(at).await;
    assert_eq!((job.eligible_at, job.expires_at), (expected, Some(expected)));
    assert_eq!(h.job(after).await.eligible_at, expected);
}

pub(super) async fn every_bad_field_is_named_and_nothing_is_stored(h: &Harness) {
    let request = NewJob { max_attempts: 0, lease: Duration::ZERO, idempotency_key: key("k"), ..job("t") };
    let mut fields = bad_fields(h.store.enqueue_job(request).await);
    fields.sort_unstable();
    assert_eq!(fields, ["leaseSeconds", "maxAttempts"]);
    assert_eq!(h.listed(&JobFilter::default()).await, []);
    // The key is still free for a valid request.
    let enqueued = h.store.enqueue_job(NewJob { idempotency_key: key("k"), ..job("t") }).await.expect("a valid job");
    assert!(!enqueued.duplicate);
}

pub(super) async fn a_single_job_cannot_depend_on_a_reference(h: &Harness) {
    let request = NewJob { reference: Some("a".into()), depends_on: vec![reference("a")], ..job("t") };
    assert_eq!(bad_fields(h.store.enqueue_job(request).await), ["dependsOn"]);
    assert_eq!(h.listed(&JobFilter::default()).await, []);
}
