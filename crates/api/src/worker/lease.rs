//! Leasing jobs.

use std::{collections::BTreeMap, time::Duration};

use orchestrix_core::{FieldError, Invalid, JobId, JobType, Json, Priority, Queue, Tenant, Timestamp, WorkerName};
use orchestrix_store::{ClaimRequest, ClaimedJob};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Capacity, raw, take_queues, take_slots};
use crate::{ObjectReader, RequestError, seconds::seconds};

/// The longest `waitSeconds` of a long poll.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// A request to lease jobs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"workerId": "host-1", "queues": ["mail"], "max": 10, "waitSeconds": 0}))))]
pub struct LeaseRequest {
    /// The worker's name. Each running worker needs its own.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::WorkerId))]
    pub worker_id: String,
    /// The queues to claim from. `["*"]`, the default, means all queues.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::schema::QueueOrAll>>, max_items = 1000))]
    pub queues: Vec<String>,
    /// The most jobs to lease. Defaults to 1.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>, minimum = 1, maximum = 10000))]
    pub max: usize,
    /// How long to wait for the first job, in seconds. Defaults to 0.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>, minimum = 0, maximum = 60))]
    pub wait_seconds: f64,
    /// The job types to claim. Defaults to all types.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::schema::TypeName>>, max_items = 1000))]
    pub job_types: Option<Vec<String>>,
    /// The worker's capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Capacity>))]
    pub capacity: Option<Capacity>,
}

/// A parsed [`LeaseRequest`].
#[derive(Debug, Clone, PartialEq)]
pub struct LeasePoll {
    /// The claim to make.
    pub claim: ClaimRequest,
    /// How long to wait for the first job.
    pub wait: Duration,
    /// The worker's total number of slots, if given.
    pub slots: Option<u32>,
}

impl LeasePoll {
    /// Parses a [`LeaseRequest`].
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        let mut object = ObjectReader::parse(text)?;
        let worker = object.string("workerId", |text| WorkerName::new(text));
        let worker = object.required("workerId", worker);
        let queues = take_queues(&mut object);
        let limit = object.integer("max").map_or(1, |n| usize::try_from(n).unwrap_or(0));
        let wait = object.seconds("waitSeconds").unwrap_or_default();
        if wait > MAX_WAIT {
            object.add_error("waitSeconds", format!("must be at most {}", MAX_WAIT.as_secs()));
        }
        let job_types = object.strings("jobTypes", ClaimRequest::MAX_NAMES, |text| JobType::new(text));
        let slots = take_slots(&mut object);
        let claim = worker.map(|worker| ClaimRequest { worker, queues, job_types, limit });
        if let Some(Err(invalid)) = claim.as_ref().map(ClaimRequest::validate) {
            for error in invalid.errors {
                object.add_error(&error.field, error.message);
            }
        }
        object.finish()?;
        let claim = claim.ok_or_else(|| Invalid::from(FieldError::new("workerId", "is required")))?;
        Ok(Self { claim, wait, slots })
    }
}

/// A leased job.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseView {
    /// The job's id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// The type of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub job_type: JobType,
    /// The input of the handler.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Box<RawValue>,
    /// The number of this attempt, starting at 1.
    pub attempt: u16,
    /// The maximum number of attempts.
    pub max_attempts: u16,
    /// The lease token, required in every call about this job.
    pub lease_token: String,
    /// When the lease expires unless a heartbeat extends it.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub lease_expires_at: Timestamp,
    /// The lease duration in seconds, for workers whose clock differs from the server's.
    pub lease_seconds: f64,
    /// The time limit of the attempt, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// The checkpoint that the previous attempt saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub checkpoint: Option<Box<RawValue>>,
    /// The results of the job's dependencies, by job id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, serde_json::Value>))]
    pub dependency_results: BTreeMap<String, Box<RawValue>>,
    /// The caller's correlation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// The W3C trace context of the request that enqueued the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The tenant of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub tenant: Tenant,
    /// The queue of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub queue: Queue,
    /// The priority of the job.
    #[cfg_attr(feature = "openapi", schema(value_type = i16))]
    pub priority: Priority,
    /// When the job became eligible to run.
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
            Duration::try_from_secs_f64(value).map_err(|_| FieldError::new(field, "is not a valid number of seconds"))
        };
        let dependency = |(id, json): (String, Box<RawValue>)| {
            let id = id.parse().map_err(|_| FieldError::new("dependencyResults", "has a key that is not a job id"))?;
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

/// The leased jobs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseResponse {
    /// The leases. Empty if no job became claimable within the wait.
    pub leases: Vec<LeaseView>,
    /// How long the request had waited when the jobs were leased, in seconds. The leases run from that moment.
    #[serde(default)]
    pub waited_seconds: f64,
}

#[cfg(test)]
mod tests {
    use orchestrix_store::Queues;

    use super::*;

    #[test]
    fn a_lease_request_has_defaults() {
        let poll = LeasePoll::parse(r#"{"workerId": "w"}"#).unwrap();
        assert_eq!(poll.claim, ClaimRequest { limit: 1, ..ClaimRequest::any(WorkerName::trusted("w"), 1) });
        assert_eq!((poll.wait, poll.slots), (Duration::ZERO, None));
        let poll = LeasePoll::parse(
            r#"{"workerId": "w", "queues": ["a"], "max": 5, "waitSeconds": 2.5, "jobTypes": ["t"], "capacity": {"slots": 9}}"#,
        );
        let poll = poll.unwrap();
        assert_eq!(poll.claim.queues, Queues::Named(vec![Queue::trusted("a")]));
        assert_eq!((poll.claim.limit, poll.wait, poll.slots), (5, Duration::from_millis(2500), Some(9)));
    }

    #[test]
    fn every_invalid_field_is_reported() {
        let text = r#"{"queues": ["a b"], "max": 0, "waitSeconds": 61, "jobTypes": [" "], "capacity": {"x": 1}}"#;
        let Err(RequestError::Invalid(invalid)) = LeasePoll::parse(text) else { panic!("the request was accepted") };
        let mut fields: Vec<&str> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["capacity.x", "jobTypes[0]", "queues[0]", "waitSeconds", "workerId"]);
    }
}
