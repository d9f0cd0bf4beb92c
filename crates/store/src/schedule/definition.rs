//! The stored form of a schedule's definition: one JSON text.

use std::time::Duration;

use orchestrix_core::{
    JobType, Json, LimitKey, NewJob, OnDependencyFailure, Priority, Queue, Resources, RetryPolicy, Start, Tag, Tenant,
    Timestamp,
    schedule::{Cadence, Misfire, NewSchedule, Overlap, ScheduleName},
};
use serde::{Deserialize, Serialize};

/// Serialises a definition for a store.
pub fn write_definition(definition: &NewSchedule) -> serde_json::Result<String> {
    serde_json::to_string(&StoredSchedule::from(definition))
}

/// Parses what [`write_definition`] wrote.
pub fn read_definition(text: &str) -> serde_json::Result<NewSchedule> {
    serde_json::from_str::<StoredSchedule>(text).map(NewSchedule::from)
}

#[derive(Serialize, Deserialize)]
struct StoredSchedule {
    name: ScheduleName,
    cadence: Cadence,
    job: StoredJob,
    overlap: Overlap,
    misfire: Misfire,
    catch_up_limit: u32,
    jitter: Duration,
    start_at: Option<Timestamp>,
    end_at: Option<Timestamp>,
    paused: bool,
    note: Option<String>,
}

// The fields that a job of a schedule may set, with the payload as text.
#[derive(Serialize, Deserialize)]
struct StoredJob {
    job_type: JobType,
    payload: String,
    queue: Queue,
    priority: Priority,
    start: Start,
    max_attempts: u16,
    timeout: Option<Duration>,
    lease: Duration,
    retry: RetryPolicy,
    tenant: Tenant,
    concurrency_key: Option<LimitKey>,
    rate_limit_key: Option<LimitKey>,
    on_dependency_failure: OnDependencyFailure,
    resources: Resources,
    tags: Vec<Tag>,
    correlation_id: Option<String>,
    traceparent: Option<String>,
    hold: bool,
}

impl From<&NewSchedule> for StoredSchedule {
    fn from(schedule: &NewSchedule) -> Self {
        let NewSchedule {
            name,
            cadence,
            job,
            overlap,
            misfire,
            catch_up_limit,
            jitter,
            start_at,
            end_at,
            paused,
            note,
        } = schedule.clone();
        let job = StoredJob {
            job_type: job.job_type,
            payload: job.payload.as_str().to_owned(),
            queue: job.queue,
            priority: job.priority,
            start: job.start,
            max_attempts: job.max_attempts,
            timeout: job.timeout,
            lease: job.lease,
            retry: job.retry,
            tenant: job.tenant,
            concurrency_key: job.concurrency_key,
            rate_limit_key: job.rate_limit_key,
            on_dependency_failure: job.on_dependency_failure,
            resources: job.resources,
            tags: job.tags,
            correlation_id: job.correlation_id,
            traceparent: job.traceparent,
            hold: job.hold,
        };
        Self { name, cadence, job, overlap, misfire, catch_up_limit, jitter, start_at, end_at, paused, note }
    }
}

impl From<StoredSchedule> for NewSchedule {
    fn from(stored: StoredSchedule) -> Self {
        let StoredSchedule {
            name,
            cadence,
            job,
            overlap,
            misfire,
            catch_up_limit,
            jitter,
            start_at,
            end_at,
            paused,
            note,
        } = stored;
        let job = NewJob {
            payload: Json::trusted(&job.payload),
            queue: job.queue,
            priority: job.priority,
            start: job.start,
            max_attempts: job.max_attempts,
            timeout: job.timeout,
            lease: job.lease,
            retry: job.retry,
            tenant: job.tenant,
            concurrency_key: job.concurrency_key,
            rate_limit_key: job.rate_limit_key,
            on_dependency_failure: job.on_dependency_failure,
            resources: job.resources,
            tags: job.tags,
            correlation_id: job.correlation_id,
            traceparent: job.traceparent,
            hold: job.hold,
            ..NewJob::new(job.job_type)
        };
        Self { name, cadence, job, overlap, misfire, catch_up_limit, jitter, start_at, end_at, paused, note }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> NewSchedule {
        let cadence = Cadence::every(Duration::from_micros(1_000_001)).unwrap();
        NewSchedule::new(ScheduleName::trusted("s"), cadence, NewJob::new(JobType::trusted("t")))
    }

    // Every field differs from its default.
    fn full() -> NewSchedule {
        let mut resources = Resources::default();
        resources.set(LimitKey::trusted("gpu"), 0.5).unwrap();
        let job = NewJob {
            payload: Json::trusted("{ \"b\": 1.50, \"a\": \"\\u00e9\" }"),
            queue: Queue::trusted("q"),
            priority: Priority::new(-3).unwrap(),
            start: Start::After(Duration::from_nanos(1_500_000_001)),
            max_attempts: 10_000,
            timeout: Some(Duration::from_millis(7)),
            lease: Duration::from_secs(99),
            retry: RetryPolicy { multiplier: 1.7, jitter: 0.1 + 0.2, ..RetryPolicy::default() },
            tenant: Tenant::trusted("acme"),
            concurrency_key: Some(LimitKey::trusted("one")),
            rate_limit_key: Some(LimitKey::trusted("two")),
            on_dependency_failure: OnDependencyFailure::Hold,
            resources,
            tags: vec![Tag::trusted("x"), Tag::trusted("y")],
            correlation_id: Some("mine".into()),
            traceparent: Some("00-1-2-3".into()),
            hold: true,
            ..NewJob::new(JobType::trusted("t"))
        };
        NewSchedule {
            cadence: Cadence::cron("*/5 1-3 * * MON", "Europe/Berlin").unwrap(),
            job,
            overlap: Overlap::CancelRunning,
            misfire: Misfire::CatchUp,
            catch_up_limit: 9,
            jitter: Duration::from_nanos(1),
            start_at: Some("2026-01-01T00:00:00.123456789Z".parse().unwrap()),
            end_at: Some("2199-01-01T00:00:00Z".parse().unwrap()),
            paused: true,
            note: Some("why: \"é\"".into()),
            ..plain()
        }
    }

    #[test]
    fn a_definition_survives_storage() {
        for definition in [plain(), full()] {
            assert_eq!(definition.validate(), Ok(()));
            let text = write_definition(&definition).unwrap();
            assert_eq!(read_definition(&text).unwrap(), definition, "{text}");
        }
    }

    #[test]
    fn numbers_survive_storage_to_the_last_bit() {
        // If a number changed in storage, every put would look like an edit.
        for n in 1..10_000_u32 {
            let retry = RetryPolicy { multiplier: 1.0 + f64::from(n) / 7_919.0, ..RetryPolicy::default() };
            let definition = NewSchedule { job: NewJob { retry, ..plain().job }, ..plain() };
            let text = write_definition(&definition).unwrap();
            assert_eq!(read_definition(&text).unwrap(), definition, "{text}");
        }
    }
}
