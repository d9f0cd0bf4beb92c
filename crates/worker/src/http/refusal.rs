//! What an answer that is none means for the runtime: what to keep and tell again, and what to give up.

use orchestrix_client::http::{StatusCode, Told};
use orchestrix_core::{FieldError, Invalid};
use orchestrix_store::StoreError;

/// The error that a refusal stands for.
pub(super) fn read(status: StatusCode, body: &[u8]) -> StoreError {
    let told = Told::read(body);
    let words = match (told.code.as_str(), told.detail.as_str()) {
        ("", _) => format!("the server answered {status}"),
        (code, "") => format!("the server answered {status} ({code})"),
        (code, detail) => format!("the server answered {status} ({code}): {detail}"),
    };
    match (status.as_u16(), told.code.as_str()) {
        (409, "lease_lost") => StoreError::LeaseLost,
        (422, "idempotency_key_reused") if told.job_id.is_some() => match told.job_id {
            Some(existing) => StoreError::IdempotencyKeyReused { existing },
            None => StoreError::Backend(words.into()),
        },
        (400 | 413 | 422, _) => StoreError::Invalid(invalid(told, words)),
        (401 | 403, _) => StoreError::Backend(format!("{words}; is the API key right?").into()),
        // The server itself says that trying again will not mend it.
        (500, "internal") => StoreError::Backend(words.into()),
        (408 | 425 | 429 | 500.., _) => StoreError::Unavailable(words),
        _ => StoreError::Backend(words.into()),
    }
}

fn invalid(told: Told, words: String) -> Invalid {
    let errors: Vec<FieldError> =
        told.errors.into_iter().map(|error| FieldError::new(error.field, error.message)).collect();
    match errors.is_empty() {
        true => FieldError::new("request", words).into(),
        false => Invalid { errors },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> StoreError {
        read(StatusCode::from_u16(status).unwrap(), body.as_bytes())
    }

    #[test]
    fn what_may_pass_is_told_from_what_will_not() {
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(matches!(of(status, "<html>"), StoreError::Unavailable(_)), "{status}");
        }
        for status in [301, 401, 403, 404, 405, 415] {
            assert!(matches!(of(status, ""), StoreError::Backend(_)), "{status}");
        }
        assert!(matches!(of(500, r#"{"code": "internal"}"#), StoreError::Backend(_)));
        assert!(of(401, r#"{"code": "unauthenticated"}"#).to_string().contains("is the API key right?"));
    }

    #[test]
    fn a_problem_says_which() {
        assert!(matches!(of(409, r#"{"code": "lease_lost"}"#), StoreError::LeaseLost));
        assert!(matches!(of(409, r#"{"code": "job_finished"}"#), StoreError::Backend(_)));
        let id = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";
        let reused = of(422, &format!(r#"{{"code": "idempotency_key_reused", "jobId": "{id}"}}"#));
        assert!(matches!(reused, StoreError::IdempotencyKeyReused { existing } if existing.to_string() == id));
        let bad = of(422, r#"{"code": "validation_failed", "errors": [{"field": "queue", "message": "no"}]}"#);
        assert_eq!(bad.to_string(), "invalid request: queue: no");
        assert!(matches!(of(413, ""), StoreError::Invalid(_)));
    }
}
