//! A request to enqueue a job, and its limits.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    FieldError, IdempotencyKey, Invalid, JobId, JobType, Json, LimitKey, Queue, Resources, RetryPolicy, Tag, Tenant,
    Timestamp,
};

/// The priority of a job: −1000 to 1000, higher is claimed first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i16")]
pub struct Priority(i16);

impl Priority {
    /// Validates the range.
    pub fn new(value: i64) -> Result<Self, FieldError> {
        match i16::try_from(value) {
            Ok(value) if (-1000..=1000).contains(&value) => Ok(Self(value)),
            _ => Err(FieldError::new("priority", format!("must be from -1000 to 1000, not {value}"))),
        }
    }

    /// The number.
    pub const fn get(self) -> i16 {
        self.0
    }
}

impl TryFrom<i64> for Priority {
    type Error = FieldError;
    fn try_from(value: i64) -> Result<Self, FieldError> {
        Self::new(value)
    }
}

impl From<Priority> for i16 {
    fn from(priority: Priority) -> Self {
        priority.0
    }
}

/// When a job becomes eligible to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Immediately.
    #[default]
    Now,
    /// This long after the store enqueued it.
    After(Duration),
    /// At this time, or immediately if it has passed.
    At(Timestamp),
}

/// A parent: a job that must finish first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DependsOn {
    /// A job that was enqueued earlier.
    Job(JobId),
    /// A job of the same call, by its [`NewJob::reference`].
    Reference(String),
}

/// What happens to a job when a parent dies or is cancelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDependencyFailure {
    /// The job is cancelled too.
    #[default]
    Cancel,
    /// The job runs nevertheless.
    Run,
    /// The job is held until an operator releases it.
    Hold,
}

/// A request to enqueue a job. Only the type is required; see [`NewJob::new`] for the defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    /// The job type, which selects the handler.
    pub job_type: JobType,
    /// The payload for the handler.
    pub payload: Json,
    /// Makes the request idempotent: a repeat returns the same job. Keys are unique per tenant and type.
    pub idempotency_key: Option<IdempotencyKey>,
    /// The queue.
    pub queue: Queue,
    /// The priority; higher is claimed first.
    pub priority: Priority,
    /// When it becomes eligible.
    pub start: Start,
    /// The attempt budget.
    pub max_attempts: u16,
    /// The time limit of one attempt.
    pub timeout: Option<Duration>,
    /// The lease duration: how long a worker keeps the job without a heartbeat.
    pub lease: Duration,
    /// The back-off between attempts.
    pub retry: RetryPolicy,
    /// A name by which other jobs of the same call can depend on this one.
    pub reference: Option<String>,
    /// Its parents: jobs that must finish first.
    pub depends_on: Vec<DependsOn>,
    /// What happens when a parent dies or is cancelled.
    pub on_dependency_failure: OnDependencyFailure,
    /// The tenant.
    pub tenant: Tenant,
    /// The key of a concurrency limit. Not enforced yet.
    pub concurrency_key: Option<LimitKey>,
    /// The key of a rate limit. Not enforced yet.
    pub rate_limit_key: Option<LimitKey>,
    /// The resources that it needs of its worker. Not enforced yet.
    pub resources: Resources,
    /// Tags to search by.
    pub tags: Vec<Tag>,
    /// The client's correlation id, attached to every log line of the job.
    pub correlation_id: Option<String>,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
    /// When the job is cancelled if it has not started.
    pub expires_at: Option<Timestamp>,
    /// Enqueue it held: it runs only after an operator or client releases it.
    pub hold: bool,
}

impl NewJob {
    /// The most jobs in one call.
    pub const MAX_BATCH: usize = 10_000;
    /// The most parents of one job.
    pub const MAX_DEPENDENCIES: usize = 1_000;
    /// The most tags of one job.
    pub const MAX_TAGS: usize = 32;
    /// The largest attempt budget.
    pub const MAX_ATTEMPTS: u16 = 10_000;
    /// The longest delay of a start.
    pub const MAX_DELAY: Duration = Duration::from_secs(10 * 366 * 24 * 3600);
    /// The default lease duration.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);
    /// The default attempt budget.
    pub const DEFAULT_ATTEMPTS: u16 = 10;

    /// A job of `job_type` with defaults: payload `null`, queue and tenant `default`, priority 0, eligible
    /// immediately, 10 attempts, no timeout, a lease of 30 s.
    pub fn new(job_type: JobType) -> Self {
        Self {
            job_type,
            payload: Json::null(),
            idempotency_key: None,
            queue: Queue::default(),
            priority: Priority::default(),
            start: Start::Now,
            max_attempts: Self::DEFAULT_ATTEMPTS,
            timeout: None,
            lease: Self::DEFAULT_LEASE,
            retry: RetryPolicy::default(),
            reference: None,
            depends_on: Vec::new(),
            on_dependency_failure: OnDependencyFailure::default(),
            tenant: Tenant::default(),
            concurrency_key: None,
            rate_limit_key: None,
            resources: Resources::default(),
            tags: Vec::new(),
            correlation_id: None,
            traceparent: None,
            expires_at: None,
            hold: false,
        }
    }

    /// Validates what the types do not: ranges, counts, lengths and absurd times. Names every bad field.
    pub fn validate(&self) -> Result<(), Invalid> {
        let mut errors = Vec::new();
        let mut bad = |field: &str, message: String| errors.push(FieldError::new(field, message));
        if self.payload.as_str().len() > Json::MAX_BYTES {
            bad("payload", format!("is over the limit of {} bytes", Json::MAX_BYTES));
        }
        if !(1..=Self::MAX_ATTEMPTS).contains(&self.max_attempts) {
            bad("maxAttempts", format!("must be from 1 to {}, not {}", Self::MAX_ATTEMPTS, self.max_attempts));
        }
        let day = Duration::from_secs(24 * 3600);
        if self.timeout.is_some_and(|timeout| timeout < Duration::from_millis(1) || timeout > 30 * day) {
            bad("timeoutSeconds", "must be from 0.001 to 2592000".into());
        }
        if self.lease < Duration::from_secs(1) || self.lease > day {
            bad("leaseSeconds", "must be from 1 to 86400".into());
        }
        match self.start {
            Start::Now => {}
            Start::After(delay) if delay > Self::MAX_DELAY => {
                bad("delaySeconds", format!("must be at most {}", Self::MAX_DELAY.as_secs()));
            }
            Start::After(_) => {}
            Start::At(time) => check_time("runAt", time, &mut bad),
        }
        if let Some(time) = self.expires_at {
            check_time("expiresAt", time, &mut bad);
        }
        if self.tags.len() > Self::MAX_TAGS {
            bad("tags", format!("may hold at most {}, holds {}", Self::MAX_TAGS, self.tags.len()));
        }
        if self.depends_on.len() > Self::MAX_DEPENDENCIES {
            bad("dependsOn", format!("may name at most {}, names {}", Self::MAX_DEPENDENCIES, self.depends_on.len()));
        }
        for (field, text) in
            [("correlationId", &self.correlation_id), ("traceparent", &self.traceparent), ("ref", &self.reference)]
        {
            if text
                .as_ref()
                .is_some_and(|text| text.is_empty() || text.len() > 255 || text.chars().any(char::is_control))
            {
                bad(field, "must have 1 to 255 bytes and no control characters".into());
            }
        }
        self.retry.check(&mut errors);
        self.resources.check(&mut errors);
        Invalid::check(errors)
    }
}

// A time far in the past or future is usually a wrong unit (milliseconds for seconds), and not every database can
// hold it.
fn check_time(field: &str, time: Timestamp, bad: &mut impl FnMut(&str, String)) {
    const YEAR_2000: i64 = 946_684_800;
    const YEAR_2200: i64 = 7_258_118_400;
    if !(YEAR_2000..YEAR_2200).contains(&time.as_second()) {
        bad(field, format!("must lie between the years 2000 and 2200, not at {time}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid() -> NewJob {
        NewJob::new(JobType::new("SEND_EMAIL").expect("a valid type"))
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(valid().validate(), Ok(()));
    }

    #[test]
    fn every_bad_field_is_named_at_once() {
        let job = NewJob {
            max_attempts: 0,
            timeout: Some(Duration::ZERO),
            lease: Duration::from_millis(10),
            start: Start::At("9999-01-01T00:00:00Z".parse().expect("a time")),
            expires_at: Some("1970-01-01T00:00:00Z".parse().expect("a time")),
            correlation_id: Some("a\0b".into()),
            retry: RetryPolicy { jitter: f64::NAN, multiplier: 0.5, ..RetryPolicy::default() },
            tags: vec![Tag::trusted("x"); 33],
            ..valid()
        };
        let fields: Vec<String> = job.validate().expect_err("invalid").errors.into_iter().map(|e| e.field).collect();
        assert_eq!(
            fields,
            [
                "maxAttempts",
                "timeoutSeconds",
                "leaseSeconds",
                "runAt",
                "expiresAt",
                "tags",
                "correlationId",
                "retry.multiplier",
                "retry.jitter"
            ]
        );
    }

    #[test]
    fn names_are_limited_to_their_characters_and_length() {
        assert!(Queue::new("a.b-C_9").is_ok());
        assert!(Queue::new("a:b").is_err());
        assert!(JobType::new("a:b").is_ok());
        assert!(Queue::new("").is_err());
        assert!(Queue::new("x".repeat(128)).is_ok());
        assert!(Queue::new("x".repeat(129)).is_err());
        assert!(Tenant::new("é").is_err());
        assert!(IdempotencyKey::new("clé ").is_err());
        assert!(IdempotencyKey::new("clé/§").is_ok());
        assert!(IdempotencyKey::new("é".repeat(255)).is_ok());
        assert_eq!(Queue::new("a b").expect_err("a space").field, "queue");
    }

    #[test]
    fn payloads_are_kept_byte_for_byte() {
        let text = r#"{"b":1.0,"a":"\u0000","b":1e400}"#;
        assert_eq!(Json::parse("payload", text).expect("JSON").as_str(), text);
        assert!(Json::parse("payload", "{").is_err());
        assert!(Json::parse("payload", "1 2").is_err());
        assert!(Json::parse("payload", &format!("\"{}\"", "x".repeat(Json::MAX_BYTES))).is_err());
    }
}
