//! Parsing a job from a JSON line with the fields of `POST /jobs`, by the same rules as the server.

use std::time::Duration;

use orchestrix_api::{RequestError, job};
use orchestrix_core::{NewJob, Start, Tenant, Timestamp};

/// Parses one line.
pub(crate) fn parse(line: &str) -> Result<NewJob, String> {
    job::parse(line, &Tenant::default()).map_err(|refusal| match refusal {
        // The caller adds the number of the line; the column remains.
        RequestError::Malformed(malformed) => malformed.to_string().replace(" line 1", ""),
        RequestError::TooLarge(error) => error.to_string(),
        RequestError::Invalid(invalid) => invalid.to_string(),
    })
}

/// The start of a job, from at most one of the two flags.
pub(crate) fn start(delay: Option<Duration>, run_at: Option<Timestamp>) -> Start {
    match (delay, run_at) {
        (Some(delay), _) => Start::After(delay),
        (None, Some(time)) => Start::At(time),
        (None, None) => Start::Now,
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::JobType;

    use super::*;

    #[test]
    fn only_the_type_is_required() {
        assert_eq!(parse(r#"{"jobType": "t"}"#), Ok(NewJob::new(JobType::trusted("t"))));
    }

    #[test]
    fn errors_name_the_invalid_field() {
        for (line, field) in [
            ("{}", "jobType"),
            (r#"{"jobType": "t", "prio": 1}"#, "prio"),
            (r#"{"jobType": "t", "queue": "a b"}"#, "queue"),
            (r#"{"jobType": "t", "delaySeconds": -1}"#, "delaySeconds"),
            (r#"{"jobType": "t", "delaySeconds": 1, "runAt": "2030-01-01T00:00:00Z"}"#, "runAt"),
            (r#"{"jobType": "t", "maxAttempts": 0}"#, "maxAttempts"),
            (r#"{"jobType": "t", "dependsOn": ["x"]}"#, "dependsOn"),
            (r#"{"jobType": "t", "resources": {"cpu": -1}}"#, "resources.cpu"),
            ("{", "EOF"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(field), "{line}: {error}");
        }
    }
}
