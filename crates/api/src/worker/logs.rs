//! What a running job has to say.

use orchestrix_core::{Invalid, Timestamp};
use orchestrix_store::{LogLevel, LogLine};
use serde::Serialize;

use crate::{Object, job::Refusal};

/// The most lines in one call.
pub const MAX_LINES: usize = 1_000;

/// Lines of a job's log.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogsRequest {
    /// In the order in which they were written.
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub lines: Vec<LineRequest>,
}

/// One line.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LineRequest {
    /// When it was written; now, unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub at: Option<Timestamp>,
    /// `trace`, `debug`, `info` (unless told otherwise), `warn` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Level>))]
    pub level: Option<String>,
    /// What it says.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::LogText))]
    pub message: String,
}

impl From<&LogLine> for LineRequest {
    fn from(line: &LogLine) -> Self {
        Self { at: line.at, level: Some(line.level.to_string()), message: line.message.clone() }
    }
}

/// Reads lines of a log.
pub fn read_logs(text: &str) -> Result<Vec<LogLine>, Refusal> {
    let mut object = Object::read(text)?;
    let lines = object.each("lines", MAX_LINES, read_line);
    let lines = object.required("lines", lines).unwrap_or_default();
    if let Err(error) = LogLine::validate(&lines) {
        object.bad(&error.field, error.message);
    }
    object.end()?;
    Ok(lines)
}

fn read_line(mut object: Object<'_>) -> Result<LogLine, Invalid> {
    let at = object.time("at");
    let level = object.text("level", |text| text.parse()).unwrap_or(LogLevel::Info);
    let message: Option<String> = object.get("message", "a string");
    let message = object.required("message", message);
    object.end()?;
    Ok(LogLine { at, level, message: message.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_places() {
        let Err(Refusal::Invalid(invalid)) = read_logs(r#"{"lines": [{"message": "a"}, {"level": "loud"}]}"#) else {
            panic!("taken")
        };
        let fields: Vec<&str> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["lines[1].level", "lines[1].message"]);
    }
}
