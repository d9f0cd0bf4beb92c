//! Maps error responses to [`StoreError`], which tells the runtime whether to retry.

use orchestrix_client::http::{ProblemBody, StatusCode};
use orchestrix_core::{FieldError, Invalid};
use orchestrix_store::StoreError;

/// The error that a response with this status and body stands for.
pub(super) fn to_store_error(status: StatusCode, body: &[u8]) -> StoreError {
    let problem = ProblemBody::parse(body);
    let message = match (problem.code.as_str(), problem.detail.as_str()) {
        ("", _) => format!("the server answered {status}"),
        (code, "") => format!("the server answered {status} ({code})"),
        (code, detail) => format!("the server answered {status} ({code}): {detail}"),
    };
    match (status.as_u16(), problem.code.as_str()) {
        (409, "lease_lost") => StoreError::LeaseLost,
        (422, "idempotency_key_reused") if problem.job_id.is_some() => match problem.job_id {
            Some(existing) => StoreError::IdempotencyKeyReused { existing },
            None => StoreError::Backend(message.into()),
        },
        (400 | 413 | 422, _) => StoreError::Invalid(invalid(problem, message)),
        (401 | 403, _) => StoreError::Backend(format!("{message}; check the API key").into()),
        // An internal error of the server: a retry would fail again.
        (500, "internal") => StoreError::Backend(message.into()),
        (408 | 425 | 429 | 500.., _) => StoreError::Unavailable(message),
        _ => StoreError::Backend(message.into()),
    }
}

fn invalid(problem: ProblemBody, message: String) -> Invalid {
    let errors: Vec<FieldError> =
        problem.errors.into_iter().map(|error| FieldError::new(error.field, error.message)).collect();
    match errors.is_empty() {
        true => FieldError::new("request", message).into(),
        false => Invalid { errors },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, body: &str) -> StoreError {
        to_store_error(StatusCode::from_u16(status).unwrap(), body.as_bytes())
    }

    #[test]
    fn only_transient_statuses_map_to_unavailable() {
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(matches!(error(status, "<html>"), StoreError::Unavailable(_)), "{status}");
        }
        for status in [301, 401, 403, 404, 405, 415] {
            assert!(matches!(error(status, ""), StoreError::Backend(_)), "{status}");
        }
        assert!(matches!(error(500, r#"{"code": "internal"}"#), StoreError::Backend(_)));
        assert!(error(401, r#"{"code": "unauthenticated"}"#).to_string().contains("check the API key"));
    }

    #[test]
    fn problem_codes_map_to_their_errors() {
        assert!(matches!(error(409, r#"{"code": "lease_lost"}"#), StoreError::LeaseLost));
        assert!(matches!(error(409, r#"{"code": "job_finished"}"#), StoreError::Backend(_)));
        let id = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";
        let reused = error(422, &format!(r#"{{"code": "idempotency_key_reused", "jobId": "{id}"}}"#));
        assert!(matches!(reused, StoreError::IdempotencyKeyReused { existing } if existing.to_string() == id));
        let bad = error(422, r#"{"code": "validation_failed", "errors": [{"field": "queue", "message": "no"}]}"#);
        assert_eq!(bad.to_string(), "invalid request: queue: no");
        assert!(matches!(error(413, ""), StoreError::Invalid(_)));
    }
}
