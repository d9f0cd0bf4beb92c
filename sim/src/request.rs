//! Steps' own words, in the store's.

use orchestrix_core::{
    DependsOn, IdempotencyKey, JobId, JobType, Json, LimitKey, NewJob, Priority, Queue, RetryPolicy, Tag, Tenant,
    Timestamp, WorkerName,
};
use orchestrix_store::{JobFilter, LogLevel, LogLine, Outcome, Queues};

use crate::step::{Ending, Filter, Payload, Request, Start, Time};

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

pub(crate) fn at(start: Timestamp, time: Time) -> Timestamp {
    match time {
        Time::After(span) => start.saturating_add(span).unwrap_or(Timestamp::MAX),
        Time::First => Timestamp::MIN,
        Time::Last => Timestamp::MAX,
    }
}

/// The request for a job whose parents have the ids `parents`.
pub(crate) fn new_job(request: &Request, parents: Vec<JobId>, start: Timestamp) -> NewJob {
    let inside = request.inside.iter().map(|name| DependsOn::Reference((*name).into()));
    let (base, max) = request.back_off;
    NewJob {
        payload: match request.payload {
            Payload::Json(text) => Json::trusted(text),
            Payload::Long => Json::trusted(&format!("\"{}\"", "long ".repeat(200))),
        },
        idempotency_key: request.key.map(IdempotencyKey::trusted),
        queue: queue(request.queue),
        priority: Priority::new(request.priority).unwrap_or_default(),
        start: match request.start {
            Start::Now => orchestrix_core::Start::Now,
            Start::After(delay) => orchestrix_core::Start::After(delay),
            Start::At(time) => orchestrix_core::Start::At(at(start, time)),
        },
        max_attempts: request.max_attempts,
        timeout: request.timeout,
        lease: request.lease,
        // No chance in it, so that times are exact; a multiplier that leaves fractions of a millisecond.
        retry: RetryPolicy { base, multiplier: 1.7, max, jitter: 0.0 },
        reference: request.reference.map(Into::into),
        depends_on: parents.into_iter().map(DependsOn::Job).chain(inside).collect(),
        on_dependency_failure: request.on_failure,
        tenant: Tenant::trusted(request.tenant),
        concurrency_key: request.tag.map(LimitKey::trusted),
        tags: request.tag.map(Tag::trusted).into_iter().collect(),
        correlation_id: request.correlation.map(Into::into),
        traceparent: request.correlation.map(Into::into),
        expires_at: request.expires.map(|time| at(start, time)),
        hold: request.hold,
        ..NewJob::new(JobType::trusted(request.job_type))
    }
}

pub(crate) fn filter(filter: &Filter, start: Timestamp) -> JobFilter {
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

pub(crate) fn outcome(ending: Ending) -> Outcome {
    match ending {
        Ending::Complete(result) => Outcome::Complete { result: result.map(Json::trusted) },
        Ending::Fail(error, retryable, retry_after) => Outcome::Fail { error: error.into(), retryable, retry_after },
        Ending::Snooze(delay) => Outcome::Snooze(delay),
        Ending::Release => Outcome::Release,
        Ending::Cancelled => Outcome::Cancelled,
        Ending::TimedOut => Outcome::TimedOut,
    }
}

pub(crate) fn line((level, time, message): &(LogLevel, Option<Time>, &str), start: Timestamp) -> LogLine {
    LogLine { at: time.map(|time| at(start, time)), level: *level, message: (*message).into() }
}
