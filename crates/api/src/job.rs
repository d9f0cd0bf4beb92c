//! `POST /jobs`, and what is answered about jobs.

use std::{collections::BTreeMap, time::Duration};

use orchestrix_core::{
    DependsOn, FieldError, IdempotencyKey, Invalid, JobId, JobStatus, JobType, Json, LimitKey, NewJob,
    OnDependencyFailure, Priority, Queue, Resources, RetryPolicy, Start, Tag, Tenant, Timestamp,
};
use orchestrix_store::{Enqueued, JobSummary};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[cfg(feature = "openapi")]
use crate::schema::{Amounts, Delay, DependencyFailure, Key, Line, Name, Parent, TimeNearNow, TypeName};
use crate::{Malformed, Object, Problem, problem::Code};

/// A job as it is asked for. Only `jobType` is required.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"jobType": "SEND_EMAIL", "payload": {"to": "user@example.com"}, "queue": "mail"}))))]
pub struct JobRequest {
    /// What kind of work: 1 to 128 of `A-Za-z0-9_.-:`.
    #[cfg_attr(feature = "openapi", schema(value_type = TypeName))]
    pub job_type: String,
    /// What the worker is handed: any JSON of at most 1 MiB; comes back exactly as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub payload: Option<Box<RawValue>>,
    /// Makes a repeat of the same request the same job, per tenant and type.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Key>))]
    pub idempotency_key: Option<String>,
    /// Where it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>))]
    pub queue: Option<String>,
    /// How urgent it is; higher first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = -1000, maximum = 1000))]
    pub priority: Option<i16>,
    /// How long after it was recorded it may start; excludes `runAt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Delay>))]
    pub delay_seconds: Option<f64>,
    /// When it may start; excludes `delaySeconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TimeNearNow>))]
    pub run_at: Option<Timestamp>,
    /// How often it may be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 10000))]
    pub max_attempts: Option<u16>,
    /// How long one attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0.001, maximum = 2592000))]
    pub timeout_seconds: Option<f64>,
    /// How long a silent worker keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 86400))]
    pub lease_seconds: Option<f64>,
    /// How long to wait between attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryRequest>,
    /// A name by which other jobs of the same batch may depend on this one.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Line>))]
    pub reference: Option<String>,
    /// What must finish first, jobs of the same tenant: ids, and `ref:NAME` for jobs of the same batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<Parent>>, max_items = 1000))]
    pub depends_on: Vec<String>,
    /// What becomes of it when one of those failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<DependencyFailure>))]
    pub on_dependency_failure: Option<OnDependencyFailure>,
    /// Whose job it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>))]
    pub tenant: Option<String>,
    /// Shares a concurrency limit with every job of this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>))]
    pub concurrency_key: Option<String>,
    /// Shares a rate limit with every job of this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Name>))]
    pub rate_limit_key: Option<String>,
    /// What it needs of its worker, such as `cpu`, `memoryMiB` or any other name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Amounts>))]
    pub resources: BTreeMap<String, f64>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<TypeName>>, max_items = 32))]
    pub tags: Vec<String>,
    /// The caller's id for the larger whole; on every log line of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Line>))]
    pub correlation_id: Option<String>,
    /// Cancelled if it has not started by then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<TimeNearNow>))]
    pub expires_at: Option<Timestamp>,
    /// Recorded, but not run until released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<bool>,
}

/// How long to wait between attempts. What is left out has its default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RetryRequest {
    /// After the first attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 2592000))]
    pub base_seconds: Option<f64>,
    /// So many times longer after each further one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 100))]
    pub multiplier: Option<f64>,
    /// Never longer than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 2592000))]
    pub max_seconds: Option<f64>,
    /// Up to this share of it more, at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1))]
    pub jitter: Option<f64>,
}

/// Why a request became no job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It cannot be read at all.
    Malformed(Malformed),
    /// A payload is over its limit.
    TooLarge(FieldError),
    /// Fields break rules.
    Invalid(Invalid),
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        match invalid.errors.iter().find(|error| is_size(error)) {
            Some(error) => Self::TooLarge(error.clone()),
            None => Self::Invalid(invalid),
        }
    }
}

// The one rule about a size; every other is about what a field says.
fn is_size(error: &FieldError) -> bool {
    let last = error.field.rsplit('.').next().unwrap_or_default();
    matches!(last, "payload" | "result" | "checkpoint") && error.message.contains("over the limit")
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Malformed(malformed) => Self::new(Code::MalformedRequest, format!("the body {malformed}")),
            Refusal::TooLarge(error) => Self::new(Code::PayloadTooLarge, error.to_string()),
            Refusal::Invalid(invalid) => Self::invalid(invalid),
        }
    }
}

/// Reads one job.
pub fn read(text: &str, home: &Tenant) -> Result<NewJob, Refusal> {
    let mut object = Object::read(text)?;
    let job = take(&mut object, home);
    Ok(finish(job, object)?)
}

/// Reads a batch, `{"jobs": […]}`. Names are given with their places, such as `jobs[3].queue`.
pub fn read_batch(text: &str, home: &Tenant) -> Result<Vec<NewJob>, Refusal> {
    let mut object = Object::read_many(text)?;
    let jobs = object.each("jobs", NewJob::MAX_BATCH, |mut inner| {
        let job = take(&mut inner, home);
        finish(job, inner)
    });
    if jobs.as_ref().is_some_and(Vec::is_empty) && object.is_good() {
        object.bad("jobs", "must not be empty");
    }
    let jobs = object.required("jobs", jobs);
    object.end()?;
    Ok(jobs.unwrap_or_default())
}

/// Takes the fields of a job out of an object, which may have others. What is wrong is noted there, where the object ends; a
/// job without a type is none. One that names no tenant is of `home`.
pub fn take(object: &mut Object<'_>, home: &Tenant) -> Option<NewJob> {
    let job_type = object.text("jobType", |text| JobType::new(text));
    let job_type = object.required("jobType", job_type);
    let mut job = NewJob::new(job_type.clone().unwrap_or_else(|| JobType::trusted("unknown")));
    if let Some(raw) = object.take_even_null("payload")
        && let Some(payload) = object.keep("payload", Json::parse("payload", raw.get()))
    {
        job.payload = payload;
    }
    job.idempotency_key = object.text("idempotencyKey", |text| IdempotencyKey::new(text));
    job.queue = object.text("queue", |text| Queue::new(text)).unwrap_or_default();
    if let Some(n) = object.whole("priority") {
        job.priority = object.keep("priority", Priority::new(n)).unwrap_or_default();
    }
    let (delay, run_at) = (object.seconds("delaySeconds"), object.time("runAt"));
    if delay.is_some() && run_at.is_some() {
        object.bad("runAt", "excludes delaySeconds");
    }
    job.start = match (delay, run_at) {
        (Some(delay), _) => Start::After(delay),
        (None, Some(time)) => Start::At(time),
        (None, None) => Start::Now,
    };
    if let Some(attempts) = object.whole("maxAttempts") {
        // One that does not fit is out of range in any case.
        job.max_attempts = u16::try_from(attempts).unwrap_or(if attempts < 0 { 0 } else { u16::MAX });
    }
    job.timeout = object.seconds("timeoutSeconds");
    job.lease = object.seconds("leaseSeconds").unwrap_or(NewJob::DEFAULT_LEASE);
    if let Some(mut retry) = object.object("retry") {
        job.retry = take_retry(&mut retry);
        object.take_in("retry", retry.end());
    }
    job.reference = object.get("ref", "a string");
    job.depends_on = object.texts("dependsOn", NewJob::MAX_DEPENDENCIES, parent).unwrap_or_default();
    job.on_dependency_failure =
        object.get::<OnDependencyFailure>("onDependencyFailure", "cancel, run or hold").unwrap_or_default();
    job.tenant = object.text("tenant", |text| Tenant::new(text)).unwrap_or_else(|| home.clone());
    job.concurrency_key = object.text("concurrencyKey", |text| LimitKey::new(text));
    job.rate_limit_key = object.text("rateLimitKey", |text| LimitKey::new(text));
    job.resources = take_resources(object);
    job.tags = object.texts("tags", NewJob::MAX_TAGS, |text| Tag::new(text)).unwrap_or_default();
    job.correlation_id = object.get("correlationId", "a string");
    job.expires_at = object.time("expiresAt");
    job.hold = object.get("hold", "true or false").unwrap_or_default();
    if let Err(invalid) = job.validate() {
        for error in invalid.errors {
            object.bad(&error.field, error.message);
        }
    }
    job_type.map(|_| job)
}

fn finish(job: Option<NewJob>, object: Object<'_>) -> Result<NewJob, Invalid> {
    object.end()?;
    job.ok_or_else(|| FieldError::new("jobType", "is required").into())
}

/// Whom to wait for: the id of a job, or `ref:NAME` of one in the same call.
pub fn parent(text: &str) -> Result<DependsOn, FieldError> {
    match text.strip_prefix("ref:") {
        Some(name) => Ok(DependsOn::Reference(name.into())),
        None => match text.parse() {
            Ok(id) => Ok(DependsOn::Job(id)),
            Err(_) => Err(FieldError::new("dependsOn", "must be the id of a job or ref:NAME")),
        },
    }
}

fn take_retry(object: &mut Object<'_>) -> RetryPolicy {
    let default = RetryPolicy::default();
    RetryPolicy {
        base: object.seconds("baseSeconds").unwrap_or(default.base),
        multiplier: object.get("multiplier", "a number").unwrap_or(default.multiplier),
        max: object.seconds("maxSeconds").unwrap_or(default.max),
        jitter: object.get("jitter", "a number").unwrap_or(default.jitter),
    }
}

fn take_resources(object: &mut Object<'_>) -> Resources {
    let mut resources = Resources::default();
    let Some(mut inner) = object.object("resources") else { return resources };
    for (name, raw) in inner.take_rest() {
        let place = format!("resources.{}", name.chars().take(64).collect::<String>());
        let amount = serde_json::from_str(raw.get()).map_err(|_| FieldError::new("", "must be a number"));
        let set = LimitKey::new(&*name).and_then(|name| resources.set(name, amount?));
        object.keep(&place, set);
    }
    resources
}

impl From<&NewJob> for JobRequest {
    fn from(job: &NewJob) -> Self {
        let default = NewJob::new(job.job_type.clone());
        let unless = |same: bool| (!same).then_some(());
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
            lease_seconds: unless(job.lease == default.lease).map(|()| secs(job.lease)),
            retry: unless(job.retry == default.retry).map(|()| RetryRequest {
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

/// Several jobs, recorded all or not at all.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"jobs": [{"jobType": "a", "ref": "a"}, {"jobType": "b", "dependsOn": ["ref:a"]}]}))))]
pub struct BatchRequest {
    /// The jobs; those with a `ref` may be waited for by others as `ref:NAME`.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 10000))]
    pub jobs: Vec<JobRequest>,
}

/// A job that is durably recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Accepted {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// Where it stands.
    #[cfg_attr(feature = "openapi", schema(value_type = Status))]
    pub status: JobStatus,
}

impl From<Enqueued> for Accepted {
    fn from(job: Enqueued) -> Self {
        Self { job_id: job.id, status: job.state.status() }
    }
}

/// Several of them, in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchAccepted {
    /// The jobs.
    pub jobs: Vec<Accepted>,
}

/// Where a job stands, in five words.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Status {
    /// It waits, for whatever.
    Pending,
    /// Somebody works on it.
    Running,
    /// Done.
    Completed,
    /// Failed for good.
    Failed,
    /// Given up.
    Cancelled,
}

/// A job as clients see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobView {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// What kind of work it is.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub job_type: JobType,
    /// Where it stands.
    #[cfg_attr(feature = "openapi", schema(value_type = Status))]
    pub status: JobStatus,
    /// When it was recorded.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When its state last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
    /// When its latest attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub started_at: Option<Timestamp>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    /// How far it has come, as its worker last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressView>,
    /// The caller's id for the larger whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
}

/// How far a job has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProgressView {
    /// From 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
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
            progress: job
                .progress
                .map(|progress| ProgressView { percent: progress.percent, message: progress.message }),
            correlation_id: job.correlation_id,
        }
    }
}

/// What a job left behind.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResultView {
    /// As its worker gave it; null if it gave none.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub result: Box<RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_it(text: &str) -> Result<NewJob, Refusal> {
        read(text, &Tenant::default())
    }

    fn read_them(text: &str) -> Result<Vec<NewJob>, Refusal> {
        read_batch(text, &Tenant::default())
    }

    #[test]
    fn only_the_type_is_required() {
        assert_eq!(read_it(r#"{"jobType": "t"}"#), Ok(NewJob::new(JobType::trusted("t"))));
    }

    #[test]
    fn every_field_is_read_and_written_alike() {
        let id = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";
        let text = format!(
            r#"{{"jobType": "SEND_EMAIL", "payload": {{"b":1.0, "a":2}}, "idempotencyKey": "k", "queue": "q",
            "priority": -5, "delaySeconds": 0.5, "maxAttempts": 3, "timeoutSeconds": 300, "leaseSeconds": 60,
            "retry": {{"baseSeconds": 2, "multiplier": 3, "maxSeconds": 100, "jitter": 0}}, "ref": "r",
            "dependsOn": ["{id}", "ref:a"], "onDependencyFailure": "hold", "tenant": "acme", "concurrencyKey": "c",
            "rateLimitKey": "smtp", "resources": {{"cpu": 0.5}}, "tags": ["x"], "correlationId": "y",
            "expiresAt": "2030-01-01T00:00:00Z", "hold": true}}"#
        );
        let job = read_it(&text).unwrap();
        assert_eq!(job.payload.as_str(), r#"{"b":1.0, "a":2}"#);
        assert_eq!(job.depends_on, [DependsOn::Job(id.parse().unwrap()), DependsOn::Reference("a".into())]);
        assert_eq!(job.start, Start::After(Duration::from_millis(500)));
        let written = serde_json::to_string(&JobRequest::from(&job)).unwrap();
        assert_eq!(read_it(&written), Ok(job));
    }

    #[test]
    fn every_bad_field_is_named_at_once() {
        let text = r#"{"payload": 1, "queue": "a b", "priority": 1001, "maxAttempts": 70000, "delaySeconds": "x",
            "retry": {"baseSeconds": -1, "also": 1}, "dependsOn": ["nobody"], "onDependencyFailure": "explode", "tags": [1],
            "resources": {"cpu": -1}, "expiresAt": "soon", "hold": 1, "nonsense": true}"#;
        let Err(Refusal::Invalid(invalid)) = read_it(text) else { panic!("taken") };
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
    fn a_payload_over_its_limit_is_told_by_its_size() {
        let text = format!(r#"{{"jobType": "t", "payload": "{}"}}"#, "x".repeat(Json::MAX_BYTES));
        assert!(matches!(read_it(&text), Err(Refusal::TooLarge(error)) if error.field == "payload"));
    }

    #[test]
    fn a_batch_names_places() {
        let Err(Refusal::Invalid(invalid)) = read_them(r#"{"jobs": [{"jobType": "a"}, {"queue": ""}, 3], "x": 1}"#)
        else {
            panic!("taken")
        };
        let fields: Vec<&str> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["jobs[1].jobType", "jobs[1].queue", "jobs[2]", "x"]);
        assert_eq!(read_them(r#"{"jobs": [{"jobType": "a"}, {"jobType": "b"}]}"#).unwrap().len(), 2);
    }

    #[test]
    fn what_cannot_be_read_is_malformed() {
        for text in ["", "[]", "{", r#"{"jobType": "a", "jobType": "b"}"#] {
            assert!(matches!(read_it(text), Err(Refusal::Malformed(_))), "{text}");
        }
    }
}
