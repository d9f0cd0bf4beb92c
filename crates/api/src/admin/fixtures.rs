//! Jobs for tests.

use std::time::Duration;

use orchestrix_core::{
    Job, JobId, JobState, JobType, Json, OnDependencyFailure, Priority, Queue, Resources, RetryPolicy, Tenant,
    Timestamp,
};

/// The time `seconds` after the job was enqueued.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + seconds).unwrap()
}

/// A job id.
pub(crate) fn id(n: u8) -> JobId {
    JobId::new(at(0), [n; 10])
}

/// A job enqueued at second 0 and unchanged since.
pub(crate) fn job(state: JobState) -> Job {
    Job {
        id: id(0),
        state,
        job_type: JobType::trusted("t"),
        queue: Queue::trusted("q"),
        tenant: Tenant::trusted("default"),
        priority: Priority::default(),
        attempts: 0,
        max_attempts: 3,
        losses: 0,
        created_at: at(0),
        updated_at: at(0),
        eligible_at: at(0),
        started_at: None,
        finished_at: None,
        expires_at: None,
        lease_expires_at: None,
        worker: None,
        leases: 0,
        cancel_requested: false,
        timeout: None,
        lease: Duration::from_secs(30),
        retry: RetryPolicy::default(),
        payload: Json::trusted("null"),
        result: None,
        progress: None,
        checkpoint: None,
        reason: None,
        attempt_log: Vec::new(),
        depends_on: Vec::new(),
        on_dependency_failure: OnDependencyFailure::Cancel,
        idempotency_key: None,
        concurrency_key: None,
        rate_limit_key: None,
        resources: Resources::default(),
        tags: Vec::new(),
        correlation_id: None,
        traceparent: None,
    }
}
