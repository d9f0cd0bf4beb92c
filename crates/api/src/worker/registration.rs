//! Registration of workers.

use std::time::Duration;

use orchestrix_core::{FieldError, Instance, Invalid, JobType, WorkerName};
use orchestrix_store::{ClaimRequest, WorkerInfo};
use serde::{Deserialize, Serialize};

use super::{Capacity, queue_names, take_queues, take_slots};
use crate::{ObjectReader, RequestError};

/// Registers a worker at its start.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"workerId": "host-1", "instanceId": "4f2a", "queues": ["mail"], "capacity": {"slots": 10}}))))]
pub struct RegisterRequest {
    /// The worker's name.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::WorkerId))]
    pub worker_id: String,
    /// An id unique to this start of the worker, such as random letters.
    /// A new id resets the directive to `run`; the same id again keeps it.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Name))]
    pub instance_id: String,
    /// The queues the worker claims from. `["*"]`, the default, means all queues.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::schema::QueueOrAll>>, max_items = 1000))]
    pub queues: Vec<String>,
    /// The job types the worker handles. Defaults to all types.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::schema::TypeName>>, max_items = 1000))]
    pub job_types: Option<Vec<String>>,
    /// The worker's capacity. Defaults to 1 slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Capacity>))]
    pub capacity: Option<Capacity>,
    /// How long the worker may go without a heartbeat before it counts as dead, in seconds. Defaults to 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>, minimum = 0.001, maximum = 604800))]
    pub dead_after_seconds: Option<f64>,
}

impl From<&WorkerInfo> for RegisterRequest {
    fn from(info: &WorkerInfo) -> Self {
        Self {
            worker_id: info.name.to_string(),
            instance_id: info.instance.as_ref().map_or_else(String::new, ToString::to_string),
            queues: queue_names(&info.queues),
            job_types: info.job_types.as_ref().map(|types| types.iter().map(ToString::to_string).collect()),
            capacity: Some(Capacity { slots: Some(info.concurrency) }),
            dead_after_seconds: info.dead_after.map(|silence| silence.as_secs_f64()),
        }
    }
}

/// Parses a [`RegisterRequest`].
pub fn parse_registration(text: &str) -> Result<WorkerInfo, RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let name = object.string("workerId", |text| WorkerName::new(text));
    let name = object.required("workerId", name);
    let instance = object.string("instanceId", |text| Instance::new(text));
    let instance = object.required("instanceId", instance);
    let queues = take_queues(&mut object);
    let job_types = object.strings("jobTypes", ClaimRequest::MAX_NAMES, |text| JobType::new(text));
    let concurrency = take_slots(&mut object).unwrap_or(1);
    let dead_after = object.seconds("deadAfterSeconds");
    let range = Duration::from_millis(1)..=WorkerInfo::MAX_DEAD_AFTER;
    if dead_after.is_some_and(|silence| !range.contains(&silence)) {
        object.add_error("deadAfterSeconds", format!("must be from 0.001 to {}", WorkerInfo::MAX_DEAD_AFTER.as_secs()));
    }
    object.finish()?;
    let name = name.ok_or_else(|| Invalid::from(FieldError::new("workerId", "is required")))?;
    Ok(WorkerInfo { name, queues, job_types, concurrency, instance, dead_after })
}

/// The response to a registration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RegisterResponse {
    /// The directive to the worker: `run`, `drain` or `stop`.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::WorkerDirective))]
    pub directive: String,
}

#[cfg(test)]
mod tests {
    use orchestrix_store::Queues;

    use super::*;

    fn invalid_fields(text: &str) -> Vec<String> {
        let Err(RequestError::Invalid(invalid)) = parse_registration(text) else { panic!("accepted: {text}") };
        let mut fields: Vec<String> = invalid.errors.into_iter().map(|error| error.field).collect();
        fields.sort_unstable();
        fields
    }

    #[test]
    fn a_registration_round_trips() {
        let info = WorkerInfo {
            queues: Queues::Named(vec!["a".parse().unwrap()]),
            job_types: Some(vec!["t".parse().unwrap()]),
            concurrency: 7,
            instance: Some(Instance::trusted("first")),
            dead_after: Some(Duration::from_secs(180)),
            ..WorkerInfo::any(WorkerName::trusted("w"))
        };
        let text = serde_json::to_string(&RegisterRequest::from(&info)).unwrap();
        assert_eq!(parse_registration(&text).unwrap(), info);
        let minimal = parse_registration(r#"{"workerId": "w", "instanceId": "i"}"#).unwrap();
        assert_eq!(minimal, WorkerInfo { instance: Some(Instance::trusted("i")), ..WorkerInfo::any(info.name) });
    }

    #[test]
    fn every_invalid_field_is_reported() {
        assert_eq!(invalid_fields("{}"), ["instanceId", "workerId"]);
        let text = r#"{"workerId": "w", "instanceId": "a b", "queues": ["x y"], "deadAfterSeconds": 0, "max": 1}"#;
        assert_eq!(invalid_fields(text), ["deadAfterSeconds", "instanceId", "max", "queues[0]"]);
    }
}
