//! Tells whether two requests under one idempotency key ask for the same.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{DependsOn, NewJob};

/// 128 bits of a hash over what a request means, not how it was written: key order and white space do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub u128);

impl Fingerprint {
    /// Hashes everything that a caller may choose, except the key itself and trace data, which differ between
    /// retries of one request.
    pub fn of(job: &NewJob) -> Self {
        // The payload was checked when it was taken; numbers beyond f64 are compared as written.
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
    fn spelling_does_not_count_and_meaning_does() {
        let a = Fingerprint::of(&with_payload(r#"{"a": 1, "b": [true]}"#));
        assert_eq!(a, Fingerprint::of(&with_payload(r#"{"b":[true],"a":1}"#)));
        assert_ne!(a, Fingerprint::of(&with_payload(r#"{"a": 2, "b": [true]}"#)));
        let late = NewJob { start: Start::After(std::time::Duration::from_secs(1)), ..with_payload("1") };
        assert_ne!(Fingerprint::of(&with_payload("1")), Fingerprint::of(&late));
    }

    #[test]
    fn numbers_too_large_to_parse_are_compared_as_written() {
        assert_ne!(Fingerprint::of(&with_payload("1e400")), Fingerprint::of(&with_payload("1e401")));
    }
}
