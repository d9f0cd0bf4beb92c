//! Converts the specs of steps to the types of the store.

use orchestrix_core::{
    DependsOn, IdempotencyKey, JobId, JobType, Json, LimitKey, NewJob, Priority, Queue, RetryPolicy, Tag, Tenant,
    Timestamp, WorkerName,
};
use orchestrix_store::{JobFilter, LogLevel, LogLine, Outcome, Queues};

use crate::step::{FilterSpec, JobSpec, OutcomeSpec, Payload, StartSpec, TimeSpec};

pub(crate) fn queue(name: &str) -> Queue {
    Queue::trusted(name)
}

pub(crate) fn worker(name: &str) -> WorkerName {
    WorkerName::trusted(name)
}

pub(crate) fn queues(names: Option<&Vec<&str>>) -> Queues {
    names.map_or(Queues::All, |names| Queues::Named(names.iter().map(|name| queue(name)).collect()))
}

pub(crate) fn job_types(names: Option<&Vec<&str>>) -> Option<Vec<JobType>> {
    names.map(|names| names.iter().map(|name| JobType::trusted(name)).collect())
}

pub(crate) fn at(start: Timestamp, time: TimeSpec) -> Timestamp {
    match time {
        TimeSpec::After(span) => start.saturating_add(span).unwrap_or(Timestamp::MAX),
        TimeSpec::Min => Timestamp::MIN,
        TimeSpec::Max => Timestamp::MAX,
    }
}

/// The job to enqueue, with `parents` as the ids of its existing parents.
pub(crate) fn new_job(job: &JobSpec, parents: Vec<JobId>, start: Timestamp) -> NewJob {
    let in_call = job.parents_in_call.iter().map(|name| DependsOn::Reference((*name).into()));
    let (base, max) = job.backoff;
    NewJob {
        payload: match job.payload {
            Payload::Json(text) => Json::trusted(text),
            Payload::Long => Json::trusted(&format!("\"{}\"", "long ".repeat(200))),
        },
        idempotency_key: job.key.map(IdempotencyKey::trusted),
        queue: queue(job.queue),
        priority: Priority::new(job.priority).unwrap_or_default(),
        start: match job.start {
            StartSpec::Now => orchestrix_core::Start::Now,
            StartSpec::After(delay) => orchestrix_core::Start::After(delay),
            StartSpec::At(time) => orchestrix_core::Start::At(at(start, time)),
        },
        max_attempts: job.max_attempts,
        timeout: job.timeout,
        lease: job.lease,
        // No jitter, so that times are exact. The multiplier produces fractions of a millisecond.
        retry: RetryPolicy { base, multiplier: 1.7, max, jitter: 0.0 },
        reference: job.reference.map(Into::into),
        depends_on: parents.into_iter().map(DependsOn::Job).chain(in_call).collect(),
        on_dependency_failure: job.on_failure,
        tenant: Tenant::trusted(job.tenant),
        concurrency_key: job.tag.map(LimitKey::trusted),
        tags: job.tag.map(Tag::trusted).into_iter().collect(),
        correlation_id: job.correlation.map(Into::into),
        traceparent: job.correlation.map(Into::into),
        expires_at: job.expires.map(|time| at(start, time)),
        hold: job.hold,
        ..NewJob::new(JobType::trusted(job.job_type))
    }
}

pub(crate) fn filter(filter: &FilterSpec, start: Timestamp) -> JobFilter {
    JobFilter {
        states: filter.states.clone(),
        queue: filter.queue.map(queue),
        job_type: filter.job_type.map(JobType::trusted),
        tenant: filter.tenant.map(Tenant::trusted),
        tag: filter.tag.map(Tag::trusted),
        text: filter.text.map(Into::into),
        from: filter.from.map(|time| at(start, time)),
        to: filter.to.map(|time| at(start, time)),
    }
}

pub(crate) fn outcome(outcome: OutcomeSpec) -> Outcome {
    match outcome {
        OutcomeSpec::Complete(result) => Outcome::Complete { result: result.map(Json::trusted) },
        OutcomeSpec::Fail(error, retryable, retry_after) => {
            Outcome::Fail { error: error.into(), retryable, retry_after }
        }
        OutcomeSpec::Snooze(delay) => Outcome::Snooze(delay),
        OutcomeSpec::Release => Outcome::Release,
        OutcomeSpec::Cancelled => Outcome::Cancelled,
        OutcomeSpec::TimedOut => Outcome::TimedOut,
    }
}

pub(crate) fn log_line((level, time, message): &(LogLevel, Option<TimeSpec>, &str), start: Timestamp) -> LogLine {
    LogLine { at: time.map(|time| at(start, time)), level: *level, message: (*message).into() }
}
