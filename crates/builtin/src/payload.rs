//! Reads the payload of a built-in job type. A payload that does not fit is a fatal error that names the field.

use std::collections::BTreeMap;

use orchestrix_core::Json;
use orchestrix_worker::{JobError, JobResult};
use serde::{Deserialize, Deserializer, de::DeserializeOwned, de::Error};
use serde_json::Value;

/// Deserializes a payload. `null` counts as an empty object.
pub(crate) fn read<T: DeserializeOwned>(payload: &Json) -> JobResult<T> {
    let text = match payload.as_str() {
        "null" => "{}",
        text => text,
    };
    // serde would accept an array as the fields in order.
    if !text.starts_with('{') {
        return Err(JobError::fatal("the payload must be an object"));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| match error.path().iter().next() {
        Some(_) => JobError::fatal(format!("invalid payload at `{}`: {}", error.path(), error.inner())),
        None => JobError::fatal(format!("invalid payload: {}", error.inner())),
    })
}

/// Deserializes a map of strings. The values may be secrets, so an error names the key and never shows a value.
pub(crate) fn string_map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let wrong = || D::Error::custom("must be an object whose values are strings");
    let Value::Object(fields) = Value::deserialize(deserializer)? else { return Err(wrong()) };
    fields
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(value) => Ok((name, value)),
            _ => Err(D::Error::custom(format!("the value of `{name}` must be a string"))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Example {
        #[allow(dead_code)]
        to: String,
        #[serde(default, deserialize_with = "string_map")]
        #[allow(dead_code)]
        labels: BTreeMap<String, String>,
    }

    fn error_for(payload: &str) -> String {
        let error = read::<Example>(&Json::trusted(payload)).unwrap_err();
        assert!(error.is_fatal());
        error.to_string()
    }

    #[test]
    fn an_invalid_payload_is_a_fatal_error_that_names_the_field() {
        assert!(read::<Example>(&Json::trusted(r#"{"to": "Ada", "labels": {"a": "b"}}"#)).is_ok());
        assert!(error_for("null").contains("missing field `to`"));
        assert!(error_for(r#"["Ada"]"#).contains("must be an object"));
        assert!(error_for(r#"{"to": 7}"#).contains("`to`"));
        assert!(error_for(r#"{"to": "Ada", "form": 1}"#).contains("unknown field `form`"));
    }

    #[test]
    fn errors_about_string_maps_do_not_show_values() {
        for (labels, name) in [(r#"{"key": 4711}"#, "key"), ("4711", "labels"), (r#""4711""#, "labels")] {
            let text = error_for(&format!(r#"{{"to": "Ada", "labels": {labels}}}"#));
            assert!(text.contains(name) && !text.contains("4711"), "{text}");
        }
    }
}
