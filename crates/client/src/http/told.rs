//! What is read of a problem. Whatever stands between may answer too, in words of its own.

use orchestrix_api::problem::BadField;
use orchestrix_core::JobId;
use serde::Deserialize;

/// As much of a problem as it says. Codes are texts: a newer server may know more of them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Told {
    /// What happened, for programs; empty if whoever answered speaks another language.
    pub code: String,
    /// What happened this time.
    pub detail: String,
    /// Every bad field.
    pub errors: Vec<BadField>,
    /// The job that an idempotency key stands for.
    pub job_id: Option<JobId>,
}

impl Told {
    /// Reads a refusal; empty if it is no problem.
    pub fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_problem_says_nothing() {
        let told = Told::read(br#"{"code": "of_tomorrow", "detail": "d", "colour": "red"}"#);
        assert_eq!((told.code.as_str(), told.detail.as_str(), told.errors.len()), ("of_tomorrow", "d", 0));
        for body in ["", "<html>", "[]", "null", r#"{"code": 3}"#] {
            assert_eq!(Told::read(body.as_bytes()).code, "", "{body}");
        }
    }
}
