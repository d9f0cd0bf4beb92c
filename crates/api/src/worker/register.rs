//! What a worker says of itself when it starts.

use std::time::Duration;

use orchestrix_core::{FieldError, Instance, Invalid, JobType, WorkerName};
use orchestrix_store::{ClaimRequest, WorkerInfo};
use serde::{Deserialize, Serialize};

use super::{Capacity, queue_names, take_queues, take_slots};
use crate::{Object, job::Refusal};

/// What a worker says of itself when it starts.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"workerId": "host-1", "instanceId": "4f2a", "queues": ["mail"], "capacity": {"slots": 10}}))))]
pub struct RegisterRequest {
    /// Its name.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::WorkerId))]
    pub worker_id: String,
    /// Something of its own for every start, such as random letters: another one under the same name begins anew, and the same again changes
    /// nothing of what the worker was told to do.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Name))]
    pub instance_id: String,
    /// From which queues it takes jobs; `["*"]`, the default, is all of them.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::schema::QueueOrAll>>, max_items = 1000))]
    pub queues: Vec<String>,
    /// The types it knows; all unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::schema::TypeName>>, max_items = 1000))]
    pub job_types: Option<Vec<String>>,
    /// How many jobs it runs at once in all; 1 unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Capacity>))]
    pub capacity: Option<Capacity>,
    /// How long a silence it takes until it counts as dead; 30 unless told otherwise.
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

/// Reads a [`RegisterRequest`].
pub fn read(text: &str) -> Result<WorkerInfo, Refusal> {
    let mut object = Object::read(text)?;
    let name = object.text("workerId", |text| WorkerName::new(text));
    let name = object.required("workerId", name);
    let instance = object.text("instanceId", |text| Instance::new(text));
    let instance = object.required("instanceId", instance);
    let queues = take_queues(&mut object);
    let job_types = object.texts("jobTypes", ClaimRequest::MAX_NAMES, |text| JobType::new(text));
    let concurrency = take_slots(&mut object).unwrap_or(1);
    let dead_after = object.seconds("deadAfterSeconds");
    let range = Duration::from_millis(1)..=WorkerInfo::MAX_DEAD_AFTER;
    if dead_after.is_some_and(|silence| !range.contains(&silence)) {
        object.bad("deadAfterSeconds", format!("must be from 0.001 to {}", WorkerInfo::MAX_DEAD_AFTER.as_secs()));
    }
    object.end()?;
    let name = name.ok_or_else(|| Invalid::from(FieldError::new("workerId", "is required")))?;
    Ok(WorkerInfo { name, queues, job_types, concurrency, instance, dead_after })
}

/// What a worker should do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Registered {
    /// `run`, `drain` or `stop`.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::WorkerDirective))]
    pub directive: String,
}

#[cfg(test)]
mod tests {
    use orchestrix_store::Queues;

    use super::*;

    fn bad_fields(text: &str) -> Vec<String> {
        let Err(Refusal::Invalid(invalid)) = read(text) else { panic!("{text} is taken") };
        let mut fields: Vec<String> = invalid.errors.into_iter().map(|error| error.field).collect();
        fields.sort_unstable();
        fields
    }

    #[test]
    fn what_one_side_says_the_other_reads() {
        let info = WorkerInfo {
            queues: Queues::Named(vec!["a".parse().unwrap()]),
            job_types: Some(vec!["t".parse().unwrap()]),
            concurrency: 7,
            instance: Some(Instance::trusted("first")),
            dead_after: Some(Duration::from_secs(180)),
            ..WorkerInfo::any(WorkerName::trusted("w"))
        };
        let text = serde_json::to_string(&RegisterRequest::from(&info)).unwrap();
        assert_eq!(read(&text).unwrap(), info);
        let least = read(r#"{"workerId": "w", "instanceId": "i"}"#).unwrap();
        assert_eq!(least, WorkerInfo { instance: Some(Instance::trusted("i")), ..WorkerInfo::any(info.name) });
    }

    #[test]
    fn everything_wrong_is_named() {
        assert_eq!(bad_fields("{}"), ["instanceId", "workerId"]);
        let text = r#"{"workerId": "w", "instanceId": "a b", "queues": ["x y"], "deadAfterSeconds": 0, "max": 1}"#;
        assert_eq!(bad_fields(text), ["deadAfterSeconds", "instanceId", "max", "queues[0]"]);
    }
}
