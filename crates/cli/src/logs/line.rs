//! Rendering a log line.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;
use tracing::Level;

use crate::output::escape_control;

/// The style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Colored,
    Json,
}

/// Names and values of fields.
type FieldSlice = [(&'static str, Value)];

/// One line, with its newline.
pub(super) fn render(
    style: Style,
    level: Level,
    target: &str,
    message: &str,
    event_fields: &FieldSlice,
    span_fields: &FieldSlice,
) -> String {
    match style {
        Style::Json => json(level, target, message, event_fields, span_fields),
        style => pretty(style, level, target, message, event_fields, span_fields),
    }
}

/// A JSON object with time, level, target, message and all fields. The first of several fields with the same name
/// wins.
pub(super) fn json(
    level: Level,
    target: &str,
    message: &str,
    event_fields: &FieldSlice,
    span_fields: &FieldSlice,
) -> String {
    let time = format!("{:.6}", Timestamp::now());
    let level = level.as_str().to_lowercase();
    let mut text = String::from("{");
    let mut written: Vec<String> = Vec::new();
    let head = [("time", time.as_str()), ("level", &level), ("target", target), ("message", message)];
    for (name, value) in head {
        member(&mut text, &mut written, name, &Value::from(value));
    }
    for (name, value) in event_fields.iter().chain(span_fields) {
        member(&mut text, &mut written, &camel(name), value);
    }
    text.push_str("}\n");
    text
}

fn member(text: &mut String, written: &mut Vec<String>, name: &str, value: &Value) {
    if written.iter().any(|written| written == name) {
        return;
    }
    if !written.is_empty() {
        text.push(',');
    }
    let _ = write!(text, "{}:{value}", Value::from(name));
    written.push(name.to_owned());
}

fn camel(name: &str) -> String {
    let mut words = name.split(['_', '.']);
    let mut text = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        text.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        text.push_str(letters.as_str());
    }
    text
}

// Shows the target only for events of other libraries.
fn pretty(
    style: Style,
    level: Level,
    target: &str,
    message: &str,
    event_fields: &FieldSlice,
    span_fields: &FieldSlice,
) -> String {
    let (color, dim, end) = match (style, level) {
        (Style::Colored, Level::ERROR) => ("\u{1b}[31m", "\u{1b}[2m", "\u{1b}[0m"),
        (Style::Colored, Level::WARN) => ("\u{1b}[33m", "\u{1b}[2m", "\u{1b}[0m"),
        (Style::Colored, Level::INFO) => ("\u{1b}[32m", "\u{1b}[2m", "\u{1b}[0m"),
        (Style::Colored, _) => ("\u{1b}[34m", "\u{1b}[2m", "\u{1b}[0m"),
        _ => ("", "", ""),
    };
    let mut text = format!("{dim}{:.3}{end} {color}{level:>5}{end} ", Timestamp::now());
    if !target.starts_with("orchestrix") {
        let _ = write!(text, "{target}: ");
    }
    text += &escape_control(message);
    for (name, value) in event_fields {
        let _ = write!(text, " {}={}", camel(name), quote(value));
    }
    let mut written: Vec<&str> = event_fields.iter().map(|(name, _)| *name).collect();
    text += dim;
    for (name, value) in span_fields {
        if !written.contains(name) {
            written.push(name);
            let _ = write!(text, " {}={}", camel(name), quote(value));
        }
    }
    text += end;
    text.push('\n');
    text
}

fn quote(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() || text.contains([' ', '"', '=']) => {
            escape_control(&format!("{text:?}"))
        }
        Value::String(text) => escape_control(text),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event_fields() -> Vec<(&'static str, Value)> {
        vec![("retry_in", "5s".into()), ("jobs", 3.into()), ("level", "no".into()), ("job_id", "inner".into())]
    }

    fn span_fields() -> Vec<(&'static str, Value)> {
        vec![("job_id", "outer".into()), ("correlation_id", "a \"b\"\u{1b}[31m\n".into())]
    }

    #[test]
    fn json_is_one_flat_object_per_line() {
        let line = json(Level::WARN, "here", "two\nlines", &event_fields(), &span_fields());
        assert_eq!(line.matches('\n').count(), 1);
        let object: serde_json::Map<String, Value> = serde_json::from_str(&line).unwrap();
        let time = object["time"].as_str().unwrap();
        assert!(time.ends_with('Z') && time.parse::<Timestamp>().is_ok(), "{time}");
        assert_eq!((&object["level"], &object["message"]), (&"warn".into(), &"two\nlines".into()));
        assert_eq!((&object["retryIn"], &object["jobs"]), (&"5s".into(), &3.into()));
        assert_eq!((&object["jobId"], &object["correlationId"]), (&"inner".into(), &span_fields()[1].1));
        assert_eq!(object.len(), 8);
        assert_eq!(line.matches("jobId").count(), 1);
    }

    #[test]
    fn a_text_line_escapes_control_characters() {
        let line =
            pretty(Style::Plain, Level::WARN, "orchestrix_worker", "so\u{7}", &event_fields()[..2], &span_fields());
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(time.parse::<Timestamp>().is_ok(), "{time}");
        assert_eq!(rest, " WARN so\\u{7} retryIn=5s jobs=3 jobId=outer correlationId=\"a \\\"b\\\"\\u{1b}[31m\\n\"\n");
        assert!(pretty(Style::Plain, Level::INFO, "hyper", "m", &[], &[]).ends_with(" INFO hyper: m\n"));
        assert!(pretty(Style::Colored, Level::INFO, "orchestrix", "m", &[], &[]).contains('\u{1b}'));
    }
}
