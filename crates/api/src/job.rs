//! `POST /jobs` and the client's view of a job.

use std::{collections::BTreeMap, time::Duration};

use orchestrix_core::{
    DependsOn, FieldError, IdempotencyKey, Invalid, JobId, JobStatus, JobType, Json, LimitKey, NewJob,
    OnDependencyFailure, Priority, Progress, Queue, Resources, RetryPolicy, Start, Tag, Tenant, Timestamp,
};
use orchestrix_store::{Enqueued, JobSummary};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[cfg(feature = "openapi")]
use crate::schema::{
    Delay, Dependency, DependencyFailure, IdempotencyKeyText, Name, ResourceAmounts, SingleLine, TimeNearNow, TypeName,
};
use crate::{ObjectReader, RequestError};

/// A job to enqueue. Only `jobType` is required.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"jobType": "SEND_EMAIL", "payload": {"to": "user@example.com"}, "queue": "mail"}))))]
pub struct JobRequest {
    /// The type of the job, which selects the handler: 1 to 128 of `A-Za-z0-9_.-:`.
    #[cfg_attr(feature = "openapi", schema(value_type = TypeName))]
    pub job_type: String,
    /// The input of the handler: any JSON of at most 1 MiB. The worker receives it byte for byte. Defaults to `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub payload: Option<Box<RawValue>>,
    /// Makes retries safe: the same key with the same request returns the same job.
    /// Keys are unique per tenant and job type.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<IdempotencyKeyText>))]
    pub idempotency_key: Option<String>,
    /// The queue of the job. Defaults to `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>))]
    pub queue: Option<String>,
    /// The priority. Workers claim higher priorities first. Defaults to 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = -1000, maximum = 1000))]
    pub priority: Option<i16>,
    /// The delay before the job may start, in seconds. Mutually exclusive with `runAt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Delay>))]
    pub delay_seconds: Option<f64>,
    /// The earliest start time. Mutually exclusive with `delaySeconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TimeNearNow>))]
    pub run_at: Option<Timestamp>,
    /// The maximum number of attempts. Defaults to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10000))]
    pub max_attempts: Option<u16>,
    /// The time limit of one attempt, in seconds. No limit by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0.001, maximum = 2592000))]
    pub timeout_seconds: Option<f64>,
    /// The lease duration, in seconds: how long a worker may go without a heartbeat. Defaults to 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 86400))]
    pub lease_seconds: Option<f64>,
    /// The backoff between attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicyRequest>,
    /// A name for this job within its batch. Other jobs of the batch depend on it as `ref:NAME`.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<SingleLine>))]
    pub reference: Option<String>,
    /// The jobs that must finish first: job ids of the same tenant, or `ref:NAME` for jobs of the same batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<Dependency>>, max_items = 1000))]
    pub depends_on: Vec<String>,
    /// What happens to the job when a dependency fails: `cancel` (default), `run` or `hold`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<DependencyFailure>))]
    pub on_dependency_failure: Option<OnDependencyFailure>,
    /// The tenant of the job. Defaults to the tenant of the API key, or `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>))]
    pub tenant: Option<String>,
    /// The key of a concurrency limit. Stored with the job; not enforced yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>))]
    pub concurrency_key: Option<String>,
    /// The key of a rate limit. Stored with the job; not enforced yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>))]
    pub rate_limit_key: Option<String>,
    /// The resources the job needs, such as `cpu`, `memoryMiB` or any other name. Not enforced yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<ResourceAmounts>))]
    pub resources: BTreeMap<String, f64>,
    /// Tags to filter jobs by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<TypeName>>, max_items = 32))]
    pub tags: Vec<String>,
    /// The caller's correlation id. Appears on every log line of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<SingleLine>))]
    pub correlation_id: Option<String>,
    /// The job is cancelled if it has not started by this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TimeNearNow>))]
    pub expires_at: Option<Timestamp>,
    /// If true, the job does not run until it is released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<bool>,
}

/// The backoff between attempts. Omitted fields keep their defaults.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RetryPolicyRequest {
    /// The delay after the first attempt, in seconds. Defaults to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 2592000))]
    pub base_seconds: Option<f64>,
    /// The factor by which each further delay grows. Defaults to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 100))]
    pub multiplier: Option<f64>,
    /// The longest delay, in seconds. Defaults to 3600.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 2592000))]
    pub max_seconds: Option<f64>,
    /// The random extra delay, as a fraction of the delay. Defaults to 0.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub jitter: Option<f64>,
}

/// Parses one job. A job without a tenant gets `default_tenant`.
pub fn parse(text: &str, default_tenant: &Tenant) -> Result<NewJob, RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let job = take_job(&mut object, default_tenant);
    Ok(finish(job, object)?)
}

/// Parses a batch, `{"jobs": […]}`. Errors carry the index of the job, such as `jobs[3].queue`.
pub fn parse_batch(text: &str, default_tenant: &Tenant) -> Result<Vec<NewJob>, RequestError> {
    let mut object = ObjectReader::parse_batch(text)?;
    let jobs = object.objects("jobs", NewJob::MAX_BATCH, |mut inner| {
        let job = take_job(&mut inner, default_tenant);
        finish(job, inner)
    });
    if jobs.as_ref().is_some_and(Vec::is_empty) && object.is_valid() {
        object.add_error("jobs", "must not be empty");
    }
    let jobs = object.required("jobs", jobs);
    object.finish()?;
    Ok(jobs.unwrap_or_default())
}

/// Takes the fields of a job out of an object, which may have others, and records errors there.
///
/// Returns `None` if the type is missing or invalid. A job without a tenant gets `default_tenant`.
pub fn take_job(object: &mut ObjectReader<'_>, default_tenant: &Tenant) -> Option<NewJob> {
    let job_type = object.string("jobType", |text| JobType::new(text));
    let job_type = object.required("jobType", job_type);
    let mut job = NewJob::new(job_type.clone().unwrap_or_else(|| JobType::trusted("unknown")));
    if let Some(raw) = object.take_nullable("payload")
        && let Some(payload) = object.record("payload", Json::parse("payload", raw.get()))
    {
        job.payload = payload;
    }
    job.idempotency_key = object.string("idempotencyKey", |text| IdempotencyKey::new(text));
    job.queue = object.string("queue", |text| Queue::new(text)).unwrap_or_default();
    if let Some(n) = object.integer("priority") {
        job.priority = object.record("priority", Priority::new(n)).unwrap_or_default();
    }
    let (delay, run_at) = (object.seconds("delaySeconds"), object.time("runAt"));
    if delay.is_some() && run_at.is_some() {
        object.add_error("runAt", "cannot be combined with delaySeconds");
    }
    job.start = match (delay, run_at) {
        (Some(delay), _) => Start::After(delay),
        (None, Some(time)) => Start::At(time),
        (None, None) => Start::Now,
    };
    if let Some(attempts) = object.integer("maxAttempts") {
        // A value that does not fit is out of range, and validation rejects the clamped value.
        job.max_attempts = u16::try_from(attempts).unwrap_or(if attempts < 0 { 0 } else { u16::MAX });
    }
    job.timeout = object.seconds("timeoutSeconds");
    job.lease = object.seconds("leaseSeconds").unwrap_or(NewJob::DEFAULT_LEASE);
    if let Some(mut retry) = object.object("retry") {
        job.retry = take_retry_policy(&mut retry);
        object.add_nested_errors("retry", retry.finish());
    }
    job.reference = object.get("ref", "a string");
    job.depends_on = object.strings("dependsOn", NewJob::MAX_DEPENDENCIES, parse_dependency).unwrap_or_default();
    job.on_dependency_failure =
        object.get::<OnDependencyFailure>("onDependencyFailure", "cancel, run or hold").unwrap_or_default();
    job.tenant = object.string("tenant", |text| Tenant::new(text)).unwrap_or_else(|| default_tenant.clone());
    job.concurrency_key = object.string("concurrencyKey", |text| LimitKey::new(text));
    job.rate_limit_key = object.string("rateLimitKey", |text| LimitKey::new(text));
    job.resources = take_resources(object);
    job.tags = object.strings("tags", NewJob::MAX_TAGS, |text| Tag::new(text)).unwrap_or_default();
    job.correlation_id = object.get("correlationId", "a string");
    job.expires_at = object.time("expiresAt");
    job.hold = object.get("hold", "true or false").unwrap_or_default();
    if let Err(invalid) = job.validate() {
        for error in invalid.errors {
            object.add_error(&error.field, error.message);
        }
    }
    job_type.map(|_| job)
}

fn finish(job: Option<NewJob>, object: ObjectReader<'_>) -> Result<NewJob, Invalid> {
    object.finish()?;
    job.ok_or_else(|| FieldError::new("jobType", "is required").into())
}

/// Parses a dependency: a job id, or `ref:NAME` of a job in the same batch.
pub fn parse_dependency(text: &str) -> Result<DependsOn, FieldError> {
    match text.strip_prefix("ref:") {
        Some(name) => Ok(DependsOn::Reference(name.into())),
        None => match text.parse() {
            Ok(id) => Ok(DependsOn::Job(id)),
            Err(_) => Err(FieldError::new("dependsOn", "must be a job id or ref:NAME")),
        },
    }
}

fn take_retry_policy(object: &mut ObjectReader<'_>) -> RetryPolicy {
    let default = RetryPolicy::default();
    RetryPolicy {
        base: object.seconds("baseSeconds").unwrap_or(default.base),
        multiplier: object.get("multiplier", "a number").unwrap_or(default.multiplier),
        max: object.seconds("maxSeconds").unwrap_or(default.max),
        jitter: object.get("jitter", "a number").unwrap_or(default.jitter),
    }
}

fn take_resources(object: &mut ObjectReader<'_>) -> Resources {
    let mut resources = Resources::default();
    let Some(mut inner) = object.object("resources") else { return resources };
    for (name, raw) in inner.take_remaining() {
        let path = format!("resources.{}", name.chars().take(64).collect::<String>());
        let amount = serde_json::from_str(raw.get()).map_err(|_| FieldError::new("", "must be a number"));
        let set = LimitKey::new(&*name).and_then(|name| resources.set(name, amount?));
        object.record(&path, set);
    }
    resources
}

impl From<&NewJob> for JobRequest {
    fn from(job: &NewJob) -> Self {
        let default = NewJob::new(job.job_type.clone());
        let unless_default = |is_default: bool| (!is_default).then_some(());
        let secs = |duration: Duration| duration.as_secs_f64();
        Self {
            job_type: job.job_type.to_string(),
            payload: RawValue::from_string(job.payload.as_str().to_owned()).ok(),
            idempotency_key: job.idempotency_key.as_ref().map(ToString::to_string),
            queue: Some(job.queue.to_string()),
            priority: Some(job.priority.get()),
            delay_seconds: match job.start {
                Start::After(delay) => Some(secs(delay)),
                _ => None,
            },
            run_at: match job.start {
                Start::At(time) => Some(time),
                _ => None,
            },
            max_attempts: Some(job.max_attempts),
            timeout_seconds: job.timeout.map(secs),
            lease_seconds: unless_default(job.lease == default.lease).map(|()| secs(job.lease)),
            retry: unless_default(job.retry == default.retry).map(|()| RetryPolicyRequest {
                base_seconds: Some(secs(job.retry.base)),
                multiplier: Some(job.retry.multiplier),
                max_seconds: Some(secs(job.retry.max)),
                jitter: Some(job.retry.jitter),
            }),
            reference: job.reference.clone(),
            depends_on: job
                .depends_on
                .iter()
                .map(|parent| match parent {
                    DependsOn::Job(id) => id.to_string(),
                    DependsOn::Reference(name) => format!("ref:{name}"),
                })
                .collect(),
            on_dependency_failure: Some(job.on_dependency_failure),
            tenant: Some(job.tenant.to_string()),
            concurrency_key: job.concurrency_key.as_ref().map(ToString::to_string),
            rate_limit_key: job.rate_limit_key.as_ref().map(ToString::to_string),
            resources: job.resources.iter().map(|(name, amount)| (name.to_string(), amount as f64 / 1000.0)).collect(),
            tags: job.tags.iter().map(ToString::to_string).collect(),
            correlation_id: job.correlation_id.clone(),
            expires_at: job.expires_at,
            hold: Some(job.hold),
        }
    }
}

/// Jobs to enqueue in one transaction: all or none.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"jobs": [{"jobType": "a", "ref": "a"}, {"jobType": "b", "dependsOn": ["ref:a"]}]}))))]
pub struct BatchRequest {
    /// The jobs. A job with a `ref` can be a dependency of the others as `ref:NAME`.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 10000))]
    pub jobs: Vec<JobRequest>,
}

/// A job and its status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobStatusView {
    /// The job's id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// The status.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::JobStatus))]
    pub status: JobStatus,
}

impl From<Enqueued> for JobStatusView {
    fn from(job: Enqueued) -> Self {
        Self { job_id: job.id, status: job.state.status() }
    }
}

/// The enqueued jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchResponse {
    /// The jobs, in the order of the request.
    pub jobs: Vec<JobStatusView>,
}

/// A job as clients see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobView {
    /// The job's id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// The type of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub job_type: JobType,
    /// The status.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::JobStatus))]
    pub status: JobStatus,
    /// When the job was enqueued.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When the job last changed state.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
    /// When the latest attempt started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub started_at: Option<Timestamp>,
    /// When the job finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    /// The progress last reported by the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressView>,
    /// The caller's correlation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
}

/// The progress of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProgressView {
    /// The percentage, from 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// A message for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl From<Progress> for ProgressView {
    fn from(progress: Progress) -> Self {
        Self { percent: progress.percent, message: progress.message }
    }
}

impl From<JobSummary> for JobView {
    fn from(job: JobSummary) -> Self {
        Self {
            job_id: job.id,
            job_type: job.job_type,
            status: job.state.status(),
            created_at: job.created_at,
            updated_at: job.updated_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            progress: job.progress.map(ProgressView::from),
            correlation_id: job.correlation_id,
        }
    }
}

/// The result of a completed job.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobResultView {
    /// The result byte for byte as the worker reported it. `null` if there is none.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub result: Box<RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_one(text: &str) -> Result<NewJob, RequestError> {
        parse(text, &Tenant::default())
    }

    fn parse_many(text: &str) -> Result<Vec<NewJob>, RequestError> {
        parse_batch(text, &Tenant::default())
    }

    #[test]
    fn only_the_job_type_is_required() {
        assert_eq!(parse_one(r#"{"jobType": "t"}"#), Ok(NewJob::new(JobType::trusted("t"))));
    }

    #[test]
    fn every_field_round_trips() {
        let id = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";
        let text = format!(
            r#"{{"jobType": "SEND_EMAIL", "payload": {{"b":1.0, "a":2}}, "idempotencyKey": "k", "queue": "q",
            "priority": -5, "delaySeconds": 0.5, "maxAttempts": 3, "timeoutSeconds": 300, "leaseSeconds": 60,
            "retry": {{"baseSeconds": 2, "multiplier": 3, "maxSeconds": 100, "jitter": 0}}, "ref": "r",
            "dependsOn": ["{id}", "ref:a"], "onDependencyFailure": "hold", "tenant": "acme", "concurrencyKey": "c",
            "rateLimitKey": "smtp", "resources": {{"cpu": 0.5}}, "tags": ["x"], "correlationId": "y",
            "expiresAt": "2030-01-01T00:00:00Z", "hold": true}}"#
        );
        let job = parse_one(&text).unwrap();
        assert_eq!(job.payload.as_str(), r#"{"b":1.0, "a":2}"#);
        assert_eq!(job.depends_on, [DependsOn::Job(id.parse().unwrap()), DependsOn::Reference("a".into())]);
        assert_eq!(job.start, Start::After(Duration::from_millis(500)));
        let written = serde_json::to_string(&JobRequest::from(&job)).unwrap();
        assert_eq!(parse_one(&written), Ok(job));
    }

    #[test]
    fn every_invalid_field_is_reported_at_once() {
        let text = r#"{"payload": 1, "queue": "a b", "priority": 1001, "maxAttempts": 70000, "delaySeconds": "x",
            "retry": {"baseSeconds": -1, "also": 1}, "dependsOn": ["no-id"], "onDependencyFailure": "explode", "tags": [1],
            "resources": {"cpu": -1}, "expiresAt": "soon", "hold": 1, "nonsense": true}"#;
        let Err(RequestError::Invalid(invalid)) = parse_one(text) else { panic!("the request was accepted") };
        let mut fields: Vec<&str> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
        fields.sort_unstable();
        let expected = [
            "delaySeconds",
            "dependsOn[0]",
            "expiresAt",
            "hold",
            "jobType",
            "maxAttempts",
            "nonsense",
            "onDependencyFailure",
            "priority",
            "queue",
            "resources.cpu",
            "retry.also",
            "retry.baseSeconds",
            "tags[0]",
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn an_oversized_payload_is_too_large_rather_than_invalid() {
        let text = format!(r#"{{"jobType": "t", "payload": "{}"}}"#, "x".repeat(Json::MAX_BYTES));
        assert!(matches!(parse_one(&text), Err(RequestError::TooLarge(error)) if error.field == "payload"));
    }

    #[test]
    fn errors_in_a_batch_carry_the_index_of_the_job() {
        let Err(RequestError::Invalid(invalid)) =
            parse_many(r#"{"jobs": [{"jobType": "a"}, {"queue": ""}, 3], "x": 1}"#)
        else {
            panic!("the request was accepted")
        };
        let fields: Vec<&str> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["jobs[1].jobType", "jobs[1].queue", "jobs[2]", "x"]);
        assert_eq!(parse_many(r#"{"jobs": [{"jobType": "a"}, {"jobType": "b"}]}"#).unwrap().len(), 2);
    }

    #[test]
    fn texts_that_are_not_objects_are_malformed() {
        for text in ["", "[]", "{", r#"{"jobType": "a", "jobType": "b"}"#] {
            assert!(matches!(parse_one(text), Err(RequestError::Malformed(_))), "{text}");
        }
    }
}
