//! What databases keep of a job in one column: whatever no statement looks at, and only where it is not the default.

use orchestrix_core::{IdempotencyKey, NewJob, OnDependencyFailure, Resources, RetryPolicy, Tag};
use serde::{Deserialize, Serialize};

/// The column `options`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobOptions {
    /// How long to wait between attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// What to do when a job that it waits for failed.
    #[serde(skip_serializing_if = "is_default")]
    pub on_dependency_failure: OnDependencyFailure,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
    /// What it needs of its worker.
    #[serde(skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// The caller's id for the larger whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// W3C trace context of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The client's name for the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl JobOptions {
    /// What a request says; `None` if nothing but defaults.
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

    /// Reads the column.
    pub fn read(column: Option<&str>) -> serde_json::Result<Self> {
        column.map_or_else(|| Ok(Self::default()), serde_json::from_str)
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::JobType;

    use super::*;

    #[test]
    fn a_plain_job_has_none_and_others_only_what_differs() {
        let plain = NewJob::new(JobType::trusted("t"));
        assert_eq!(JobOptions::of(&plain), None);
        let tagged = NewJob { tags: vec![Tag::trusted("x")], ..plain };
        let text = serde_json::to_string(&JobOptions::of(&tagged)).unwrap();
        assert_eq!(text, r#"{"tags":["x"]}"#);
        assert_eq!(JobOptions::read(Some(&text)).ok(), JobOptions::of(&tagged));
        assert_eq!(JobOptions::read(None).ok(), Some(JobOptions::default()));
    }
}
