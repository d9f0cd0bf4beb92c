//! The body of an error response. A proxy may send one too, in its own format.

use orchestrix_api::problem::BadField;
use orchestrix_core::JobId;
use serde::Deserialize;

/// The fields of a problem document that the client uses. The code is a string, because a newer server may have more
/// codes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProblemBody {
    /// The machine-readable problem code. Empty if the body is no problem document.
    pub code: String,
    /// The human-readable explanation of this occurrence.
    pub detail: String,
    /// The invalid fields of the request.
    pub errors: Vec<BadField>,
    /// The job that the idempotency key belongs to.
    pub job_id: Option<JobId>,
}

impl ProblemBody {
    /// Parses the body of an error response. All fields are empty if it is no problem document.
    pub fn parse(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_codes_are_kept_and_other_bodies_parse_as_empty() {
        let problem = ProblemBody::parse(br#"{"code": "of_tomorrow", "detail": "d", "colour": "red"}"#);
        assert_eq!((problem.code.as_str(), problem.detail.as_str(), problem.errors.len()), ("of_tomorrow", "d", 0));
        for body in ["", "<html>", "[]", "null", r#"{"code": 3}"#] {
            assert_eq!(ProblemBody::parse(body.as_bytes()).code, "", "{body}");
        }
    }
}
