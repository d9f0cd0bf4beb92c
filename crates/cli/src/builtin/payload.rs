//! Reading the payload of a built-in type. One that does not fit is fatal, and the error names the field.

use std::collections::BTreeMap;

use orchestrix_core::Json;
use orchestrix_worker::{JobError, JobResult};
use serde::{Deserialize, Deserializer, de::DeserializeOwned, de::Error};
use serde_json::Value;

/// Reads the fields of a payload. None at all is the same as an object without any.
pub(super) fn read<T: DeserializeOwned>(payload: &Json) -> JobResult<T> {
    let text = match payload.as_str() {
        "null" => "{}",
        text => text,
    };
    // A list would be taken for the fields in their order.
    if !text.starts_with('{') {
        return Err(JobError::fatal("the payload must be an object"));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| match error.path().iter().next() {
        Some(_) => JobError::fatal(format!("the payload does not fit at `{}`: {}", error.path(), error.inner())),
        None => JobError::fatal(format!("the payload does not fit: {}", error.inner())),
    })
}

/// Reads texts by their names. They may be secrets: an error shows a name and no text.
pub(super) fn texts<'de, D: Deserializer<'de>>(reader: D) -> Result<BTreeMap<String, String>, D::Error> {
    let wrong = || D::Error::custom("must be an object whose values are texts");
    let Value::Object(fields) = Value::deserialize(reader)? else { return Err(wrong()) };
    fields
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name, text)),
            _ => Err(D::Error::custom(format!("the value of `{name}` must be a text"))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Letter {
        #[allow(dead_code)]
        to: String,
        #[serde(default, deserialize_with = "texts")]
        #[allow(dead_code)]
        marks: BTreeMap<String, String>,
    }

    fn refused(payload: &str) -> String {
        let error = read::<Letter>(&Json::trusted(payload)).unwrap_err();
        assert!(error.is_fatal());
        error.to_string()
    }

    #[test]
    fn what_does_not_fit_is_fatal_and_named() {
        assert!(read::<Letter>(&Json::trusted(r#"{"to": "Ada", "marks": {"a": "b"}}"#)).is_ok());
        assert!(refused("null").contains("missing field `to`"));
        assert!(refused(r#"["Ada"]"#).contains("must be an object"));
        assert!(refused(r#"{"to": 7}"#).contains("`to`"));
        assert!(refused(r#"{"to": "Ada", "form": 1}"#).contains("unknown field `form`"));
    }

    #[test]
    fn values_that_may_be_secret_are_not_shown() {
        for (marks, name) in [(r#"{"key": 4711}"#, "key"), ("4711", "marks"), (r#""4711""#, "marks")] {
            let text = refused(&format!(r#"{{"to": "Ada", "marks": {marks}}}"#));
            assert!(text.contains(name) && !text.contains("4711"), "{text}");
        }
    }
}
