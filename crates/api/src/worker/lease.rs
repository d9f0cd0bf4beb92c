//! Asking for jobs, and being given them.

use std::{collections::BTreeMap, time::Duration};

use orchestrix_core::{FieldError, Invalid, JobId, JobType, Json, Priority, Queue, Tenant, Timestamp, WorkerName};
use orchestrix_store::{ClaimRequest, ClaimedJob};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Capacity, raw, take_queues, take_slots};
use crate::{Object, job::Refusal, seconds::seconds};

/// How long one may ask to wait: for jobs, or for a job to change.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// A request for jobs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"workerId": "host-1", "queues": ["mail"], "max": 10, "waitSeconds": 0}))))]
pub struct LeaseRequest {
    /// Who asks: a name of its own.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::WorkerId))]
    pub worker_id: String,
    /// From which queues; `["*"]`, the default, is all of them.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::schema::QueueOrAll>>, max_items = 1000))]
    pub queues: Vec<String>,
    /// How many jobs at most; 1 unless told otherwise.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>, minimum = 1, maximum = 10000))]
    pub max: usize,
    /// How long to wait for the first; not at all unless told otherwise.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>, minimum = 0, maximum = 60))]
    pub wait_seconds: f64,
    /// Only these types; all unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::schema::TypeName>>, max_items = 1000))]
    pub job_types: Option<Vec<String>>,
    /// How many jobs it runs at once in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Capacity>))]
    pub capacity: Option<Capacity>,
}

/// A request for jobs, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// What is asked for.
    pub claim: ClaimRequest,
    /// How long to wait.
    pub wait: Duration,
    /// How many jobs the worker runs at once, if it says so.
    pub slots: Option<u32>,
}

impl Ask {
    /// Reads a [`LeaseRequest`].
    pub fn read(text: &str) -> Result<Self, Refusal> {
        let mut object = Object::read(text)?;
        let worker = object.text("workerId", |text| WorkerName::new(text));
        let worker = object.required("workerId", worker);
        let queues = take_queues(&mut object);
        let limit = object.whole("max").map_or(1, |n| usize::try_from(n).unwrap_or(0));
        let wait = object.seconds("waitSeconds").unwrap_or_default();
        if wait > MAX_WAIT {
            object.bad("waitSeconds", format!("must be at most {}", MAX_WAIT.as_secs()));
        }
        let job_types = object.texts("jobTypes", ClaimRequest::MAX_NAMES, |text| JobType::new(text));
        let slots = take_slots(&mut object);
        let claim = worker.map(|worker| ClaimRequest { worker, queues, job_types, limit });
        if let Some(Err(invalid)) = claim.as_ref().map(ClaimRequest::validate) {
            for error in invalid.errors {
                object.bad(&error.field, error.message);
            }
        }
        object.end()?;
        let claim = claim.ok_or_else(|| Invalid::from(FieldError::new("workerId", "is required")))?;
        Ok(Self { claim, wait, slots })
    }
}

/// A job that a worker now owns.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseView {
    /// The job's id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// What kind of work it is.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub job_type: JobType,
    /// What to work on.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Box<RawValue>,
    /// Which attempt this is, from 1.
    pub attempt: u16,
    /// How many there may be.
    pub max_attempts: u16,
    /// Proof of ownership, for every call about the job.
    pub lease_token: String,
    /// Until when the worker may be silent.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub lease_expires_at: Timestamp,
    /// How long that was from the claim, for the worker's own clock.
    pub lease_seconds: f64,
    /// How long the attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// What the previous attempt left for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub checkpoint: Option<Box<RawValue>>,
    /// What the jobs it waited for left behind, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, serde_json::Value>))]
    pub dependency_results: BTreeMap<String, Box<RawValue>>,
    /// The caller's id for the larger whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// W3C trace context of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Whose it is.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub tenant: Tenant,
    /// Where it waited.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub queue: Queue,
    /// How urgent it is.
    #[cfg_attr(feature = "openapi", schema(value_type = i16))]
    pub priority: Priority,
    /// When it became eligible.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub eligible_at: Timestamp,
}

impl From<ClaimedJob> for LeaseView {
    fn from(job: ClaimedJob) -> Self {
        Self {
            job_id: job.id(),
            payload: raw(&job.payload),
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            lease_token: job.token.to_string(),
            lease_expires_at: job.lease_expires_at,
            lease_seconds: seconds(job.lease),
            timeout_seconds: job.timeout.map(seconds),
            checkpoint: job.checkpoint.as_ref().map(raw),
            dependency_results: job.dependency_results.iter().map(|(id, json)| (id.to_string(), raw(json))).collect(),
            job_type: job.job_type,
            correlation_id: job.correlation_id,
            traceparent: job.traceparent,
            tenant: job.tenant,
            queue: job.queue,
            priority: job.priority,
            eligible_at: job.eligible_at,
        }
    }
}

impl TryFrom<LeaseView> for ClaimedJob {
    type Error = FieldError;

    fn try_from(view: LeaseView) -> Result<Self, FieldError> {
        let seconds = |field: &str, value: f64| {
            Duration::try_from_secs_f64(value).map_err(|_| FieldError::new(field, "is not a number of seconds"))
        };
        let dependency = |(id, json): (String, Box<RawValue>)| {
            let id = id.parse().map_err(|_| FieldError::new("dependencyResults", "has a key that is no id"))?;
            Ok((id, Json::trusted(json.get())))
        };
        Ok(Self {
            token: view.lease_token.parse()?,
            job_type: view.job_type,
            queue: view.queue,
            tenant: view.tenant,
            priority: view.priority,
            payload: Json::trusted(view.payload.get()),
            attempt: view.attempt,
            max_attempts: view.max_attempts,
            eligible_at: view.eligible_at,
            lease_expires_at: view.lease_expires_at,
            lease: seconds("leaseSeconds", view.lease_seconds)?,
            timeout: view.timeout_seconds.map(|value| seconds("timeoutSeconds", value)).transpose()?,
            checkpoint: view.checkpoint.map(|json| Json::trusted(json.get())),
            correlation_id: view.correlation_id,
            traceparent: view.traceparent,
            dependency_results: view.dependency_results.into_iter().map(dependency).collect::<Result<_, _>>()?,
        })
    }
}

/// Jobs that a worker now owns.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Leases {
    /// None after the wait, if there were none.
    pub leases: Vec<LeaseView>,
    /// How long the request had waited when they were leased: the leases run from then on, not from when it was sent.
    #[serde(default)]
    pub waited_seconds: f64,
}

#[cfg(test)]
mod tests {
    use orchestrix_store::Queues;

    use super::*;

    #[test]
    fn a_request_for_jobs_has_defaults() {
        let ask = Ask::read(r#"{"workerId": "w"}"#).unwrap();
        assert_eq!(ask.claim, ClaimRequest { limit: 1, ..ClaimRequest::any(WorkerName::trusted("w"), 1) });
        assert_eq!((ask.wait, ask.slots), (Duration::ZERO, None));
        let ask = Ask::read(
            r#"{"workerId": "w", "queues": ["a"], "max": 5, "waitSeconds": 2.5, "jobTypes": ["t"], "capacity": {"slots": 9}}"#,
        );
        let ask = ask.unwrap();
        assert_eq!(ask.claim.queues, Queues::Named(vec![Queue::trusted("a")]));
        assert_eq!((ask.claim.limit, ask.wait, ask.slots), (5, Duration::from_millis(2500), Some(9)));
    }

    #[test]
    fn what_is_wrong_with_a_request_is_named() {
        let text = r#"{"queues": ["a b"], "max": 0, "waitSeconds": 61, "jobTypes": [" "], "capacity": {"x": 1}}"#;
        let Err(Refusal::Invalid(invalid)) = Ask::read(text) else { panic!("taken") };
        let mut fields: Vec<&str> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["capacity.x", "jobTypes[0]", "queues[0]", "waitSeconds", "workerId"]);
    }
}
