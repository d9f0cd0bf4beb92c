//! Log lines of running jobs.

use orchestrix_core::{Invalid, Timestamp};
use orchestrix_store::{LogLevel, LogLine};
use serde::Serialize;

use crate::{ObjectReader, RequestError};

/// The most lines in one request.
pub const MAX_LINES: usize = 1_000;

/// Log lines to append.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogsRequest {
    /// The lines, oldest first.
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub lines: Vec<LogLineRequest>,
}

/// One log line.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogLineRequest {
    /// When the line was written. Defaults to now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub at: Option<Timestamp>,
    /// The severity: `trace`, `debug`, `info` (default), `warn` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::LogLevel>))]
    pub level: Option<String>,
    /// The message.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::LogMessage))]
    pub message: String,
}

impl From<&LogLine> for LogLineRequest {
    fn from(line: &LogLine) -> Self {
        Self { at: line.at, level: Some(line.level.to_string()), message: line.message.clone() }
    }
}

/// Parses a [`LogsRequest`].
pub fn parse_logs(text: &str) -> Result<Vec<LogLine>, RequestError> {
    let mut object = ObjectReader::parse(text)?;
    let lines = object.objects("lines", MAX_LINES, parse_line);
    let lines = object.required("lines", lines).unwrap_or_default();
    if let Err(error) = LogLine::validate(&lines) {
        object.add_error(&error.field, error.message);
    }
    object.finish()?;
    Ok(lines)
}

fn parse_line(mut object: ObjectReader<'_>) -> Result<LogLine, Invalid> {
    let at = object.time("at");
    let level = object.string("level", |text| text.parse()).unwrap_or(LogLevel::Info);
    let message: Option<String> = object.get("message", "a string");
    let message = object.required("message", message);
    object.finish()?;
    Ok(LogLine { at, level, message: message.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_carry_the_index_of_the_line() {
        let Err(RequestError::Invalid(invalid)) = parse_logs(r#"{"lines": [{"message": "a"}, {"level": "loud"}]}"#)
        else {
            panic!("the request was accepted")
        };
        let fields: Vec<&str> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["lines[1].level", "lines[1].message"]);
    }
}
