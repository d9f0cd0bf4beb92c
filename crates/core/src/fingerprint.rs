//! Whether two requests with one idempotency key are the same request.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{DependsOn, NewJob};

/// 128 bits of a hash over the meaning of a request. Key order and white space of the payload do not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub u128);

impl Fingerprint {
    /// Hashes everything that a client can set, except the key itself and trace data, which differs between retries of
    /// one request.
    pub fn of(job: &NewJob) -> Self {
        // The payload is valid JSON, so only numbers beyond f64 fail here. Such a payload is compared as text.
        let payload: Value = job.payload.to().unwrap_or_else(|_| Value::String(job.payload.as_str().into()));
        let depends_on: Vec<Value> = job
            .depends_on
            .iter()
            .map(|parent| match parent {
                DependsOn::Job(id) => json!(id),
                DependsOn::Reference(name) => json!(format!("ref:{name}")),
            })
            .collect();
        let meaning = json!([
            job.job_type,
            payload,
            job.queue,
            job.priority,
            job.start,
            job.max_attempts,
            job.timeout,
            job.lease,
            job.retry,
            job.reference,
            depends_on,
            job.on_dependency_failure,
            job.tenant,
            job.concurrency_key,
            job.rate_limit_key,
            job.resources,
            job.tags,
            job.correlation_id,
            job.expires_at,
            job.hold,
        ]);
        let hash = Sha256::digest(meaning.to_string().as_bytes());
        let mut half = [0; 16];
        half.copy_from_slice(&hash[..16]);
        Self(u128::from_be_bytes(half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobType, Json, Start};

    fn with_payload(text: &str) -> NewJob {
        NewJob { payload: Json::parse("payload", text).expect("JSON"), ..NewJob::new(JobType::trusted("t")) }
    }

    #[test]
    fn requests_that_mean_the_same_have_the_same_fingerprint() {
        let a = Fingerprint::of(&with_payload(r#"{"a": 1, "b": [true]}"#));
        assert_eq!(a, Fingerprint::of(&with_payload(r#"{"b":[true],"a":1}"#)));
        assert_ne!(a, Fingerprint::of(&with_payload(r#"{"a": 2, "b": [true]}"#)));
        let late = NewJob { start: Start::After(std::time::Duration::from_secs(1)), ..with_payload("1") };
        assert_ne!(Fingerprint::of(&with_payload("1")), Fingerprint::of(&late));
    }

    #[test]
    fn payloads_with_numbers_beyond_f64_are_compared_as_text() {
        assert_ne!(Fingerprint::of(&with_payload("1e400")), Fingerprint::of(&with_payload("1e401")));
    }
}
