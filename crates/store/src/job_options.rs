//! The `options` column of a job: fields that no statement reads, and only those that differ from their defaults.

use orchestrix_core::{IdempotencyKey, NewJob, OnDependencyFailure, Resources, RetryPolicy, Tag};
use serde::{Deserialize, Serialize};

/// The column `options`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobOptions {
    /// The back-off between attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// What happens when a parent dies or is cancelled.
    #[serde(skip_serializing_if = "is_default")]
    pub on_dependency_failure: OnDependencyFailure,
    /// The tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
    /// The resources that it needs of its worker. Not enforced yet.
    #[serde(skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// The client's correlation id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// W3C trace context of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The client's idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl JobOptions {
    /// The options of a request, or `None` if all are defaults.
    pub fn of(job: &NewJob) -> Option<Self> {
        let options = Self {
            retry: (job.retry != RetryPolicy::default()).then_some(job.retry),
            on_dependency_failure: job.on_dependency_failure,
            tags: job.tags.clone(),
            resources: job.resources.clone(),
            correlation_id: job.correlation_id.clone(),
            traceparent: job.traceparent.clone(),
            idempotency_key: job.idempotency_key.clone(),
        };
        (options != Self::default()).then_some(options)
    }

    /// Parses the column.
    pub fn read(column: Option<&str>) -> serde_json::Result<Self> {
        column.map_or_else(|| Ok(Self::default()), serde_json::from_str)
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::JobType;

    use super::*;

    #[test]
    fn only_options_that_differ_from_the_defaults_are_stored() {
        let plain = NewJob::new(JobType::trusted("t"));
        assert_eq!(JobOptions::of(&plain), None);
        let tagged = NewJob { tags: vec![Tag::trusted("x")], ..plain };
        let text = serde_json::to_string(&JobOptions::of(&tagged)).unwrap();
        assert_eq!(text, r#"{"tags":["x"]}"#);
        assert_eq!(JobOptions::read(Some(&text)).ok(), JobOptions::of(&tagged));
        assert_eq!(JobOptions::read(None).ok(), Some(JobOptions::default()));
    }
}
