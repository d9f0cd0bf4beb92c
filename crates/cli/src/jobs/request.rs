//! A job as a line of JSON, with the fields of `POST /jobs`. Unknown fields are refused; the payload stays as it is written.

use std::{collections::BTreeMap, time::Duration};

use orchestrix_core::{
    DependsOn, FieldError, IdempotencyKey, Invalid, JobType, Json, LimitKey, NewJob, OnDependencyFailure, Priority,
    Queue, Resources, RetryPolicy, Start, Tag, Tenant, Timestamp,
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// One line.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Request<'a> {
    job_type: JobType,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    idempotency_key: Option<IdempotencyKey>,
    queue: Option<Queue>,
    priority: Option<Priority>,
    delay_seconds: Option<f64>,
    run_at: Option<Timestamp>,
    max_attempts: Option<u16>,
    timeout_seconds: Option<f64>,
    lease_seconds: Option<f64>,
    retry: Option<Retry>,
    #[serde(rename = "ref")]
    reference: Option<String>,
    depends_on: Option<Vec<String>>,
    on_dependency_failure: Option<OnDependencyFailure>,
    tenant: Option<Tenant>,
    concurrency_key: Option<LimitKey>,
    rate_limit_key: Option<LimitKey>,
    resources: Option<BTreeMap<LimitKey, f64>>,
    tags: Option<Vec<Tag>>,
    correlation_id: Option<String>,
    expires_at: Option<Timestamp>,
    hold: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Retry {
    base_seconds: Option<f64>,
    multiplier: Option<f64>,
    max_seconds: Option<f64>,
    jitter: Option<f64>,
}

/// Reads one line.
pub(crate) fn read(line: &str) -> Result<NewJob, String> {
    // The position within the line follows; which line it was, the caller knows.
    let request: Request<'_> = serde_json::from_str(line).map_err(|error| error.to_string().replace(" line 1", ""))?;
    let job = request.into_job().map_err(|error| error.to_string())?;
    job.validate().map_err(|invalid| invalid.to_string())?;
    Ok(job)
}

/// Whom to wait for: the id of a job, or `ref:NAME` of one in the same call.
pub(crate) fn parent(text: &str) -> Result<DependsOn, FieldError> {
    match text.strip_prefix("ref:") {
        Some(name) => Ok(DependsOn::Reference(name.into())),
        None => match text.parse() {
            Ok(id) => Ok(DependsOn::Job(id)),
            Err(_) => Err(FieldError::new("dependsOn", format!("{text:?} must be the id of a job or ref:NAME"))),
        },
    }
}

impl Request<'_> {
    fn into_job(self) -> Result<NewJob, Invalid> {
        let mut errors = Vec::new();
        let mut seconds = |field: &str, value: Option<f64>| {
            let duration = Duration::try_from_secs_f64(value?);
            duration.map_err(|_| errors.push(FieldError::new(field, "must be a number of seconds, not negative"))).ok()
        };
        let delay = seconds("delaySeconds", self.delay_seconds);
        let timeout = seconds("timeoutSeconds", self.timeout_seconds);
        let lease = seconds("leaseSeconds", self.lease_seconds).unwrap_or(NewJob::DEFAULT_LEASE);
        let retry = self.retry.map_or_else(RetryPolicy::default, |retry| {
            let default = RetryPolicy::default();
            RetryPolicy {
                base: seconds("retry.baseSeconds", retry.base_seconds).unwrap_or(default.base),
                multiplier: retry.multiplier.unwrap_or(default.multiplier),
                max: seconds("retry.maxSeconds", retry.max_seconds).unwrap_or(default.max),
                jitter: retry.jitter.unwrap_or(default.jitter),
            }
        });
        let mut taken = |result: Result<(), FieldError>| errors.extend(result.err());
        let mut resources = Resources::default();
        for (name, amount) in self.resources.unwrap_or_default() {
            taken(resources.set(name, amount));
        }
        let mut depends_on = Vec::new();
        for text in self.depends_on.unwrap_or_default() {
            taken(parent(&text).map(|parent| depends_on.push(parent)));
        }
        let mut payload = Json::null();
        if let Some(raw) = self.payload {
            taken(Json::parse("payload", raw.get()).map(|json| payload = json));
        }
        if delay.is_some() && self.run_at.is_some() {
            taken(Err(FieldError::new("runAt", "excludes delaySeconds")));
        }
        Invalid::check(errors)?;
        let default = NewJob::new(self.job_type);
        Ok(NewJob {
            payload,
            idempotency_key: self.idempotency_key,
            queue: self.queue.unwrap_or_default(),
            priority: self.priority.unwrap_or_default(),
            start: start(delay, self.run_at),
            max_attempts: self.max_attempts.unwrap_or(default.max_attempts),
            timeout,
            lease,
            retry,
            reference: self.reference,
            depends_on,
            on_dependency_failure: self.on_dependency_failure.unwrap_or_default(),
            tenant: self.tenant.unwrap_or_default(),
            concurrency_key: self.concurrency_key,
            rate_limit_key: self.rate_limit_key,
            resources,
            tags: self.tags.unwrap_or_default(),
            correlation_id: self.correlation_id,
            expires_at: self.expires_at,
            hold: self.hold.unwrap_or_default(),
            ..default
        })
    }
}

/// When to start, given at most one of the two.
pub(crate) fn start(delay: Option<Duration>, run_at: Option<Timestamp>) -> Start {
    match (delay, run_at) {
        (Some(delay), _) => Start::After(delay),
        (None, Some(time)) => Start::At(time),
        (None, None) => Start::Now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_type_is_required() {
        assert_eq!(read(r#"{"jobType": "t"}"#), Ok(NewJob::new(JobType::trusted("t"))));
    }

    #[test]
    fn every_field_is_read() {
        let id = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";
        let job = read(&format!(
            r#"{{"jobType": "SEND_EMAIL", "payload": {{"b":1.0, "a":2}}, "idempotencyKey": "k", "queue": "q",
            "priority": -5, "delaySeconds": 0.5, "maxAttempts": 3, "timeoutSeconds": 300, "leaseSeconds": 60,
            "retry": {{"baseSeconds": 2, "multiplier": 3, "maxSeconds": 100, "jitter": 0}}, "ref": "r",
            "dependsOn": ["{id}", "ref:a"], "onDependencyFailure": "hold", "tenant": "acme", "concurrencyKey": "c",
            "rateLimitKey": "smtp", "resources": {{"cpu": 0.5}}, "tags": ["x"], "correlationId": "y",
            "expiresAt": "2030-01-01T00:00:00Z", "hold": true}}"#
        ))
        .unwrap();
        let mut resources = Resources::default();
        resources.set(LimitKey::trusted("cpu"), 0.5).unwrap();
        let expected = NewJob {
            payload: Json::trusted(r#"{"b":1.0, "a":2}"#),
            idempotency_key: Some(IdempotencyKey::trusted("k")),
            queue: Queue::trusted("q"),
            priority: Priority::new(-5).unwrap(),
            start: Start::After(Duration::from_millis(500)),
            max_attempts: 3,
            timeout: Some(Duration::from_secs(300)),
            lease: Duration::from_secs(60),
            retry: RetryPolicy {
                base: Duration::from_secs(2),
                multiplier: 3.0,
                max: Duration::from_secs(100),
                jitter: 0.0,
            },
            reference: Some("r".into()),
            depends_on: vec![DependsOn::Job(id.parse().unwrap()), DependsOn::Reference("a".into())],
            on_dependency_failure: OnDependencyFailure::Hold,
            tenant: Tenant::trusted("acme"),
            concurrency_key: Some(LimitKey::trusted("c")),
            rate_limit_key: Some(LimitKey::trusted("smtp")),
            resources,
            tags: vec![Tag::trusted("x")],
            correlation_id: Some("y".into()),
            expires_at: Some("2030-01-01T00:00:00Z".parse().unwrap()),
            hold: true,
            ..NewJob::new(JobType::trusted("SEND_EMAIL"))
        };
        assert_eq!(job, expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, word) in [
            ("{}", "jobType"),
            (r#"{"jobType": "t", "prio": 1}"#, "prio"),
            (r#"{"jobType": "t", "queue": "a b"}"#, "queue"),
            (r#"{"jobType": "t", "delaySeconds": -1}"#, "delaySeconds"),
            (r#"{"jobType": "t", "delaySeconds": 1, "runAt": "2030-01-01T00:00:00Z"}"#, "runAt"),
            (r#"{"jobType": "t", "maxAttempts": 0}"#, "maxAttempts"),
            (r#"{"jobType": "t", "dependsOn": ["x"]}"#, "dependsOn"),
            (r#"{"jobType": "t", "resources": {"cpu": -1}}"#, "resources.cpu"),
            ("{", "EOF"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(word), "{line}: {error}");
        }
    }
}
