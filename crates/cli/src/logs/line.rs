//! How a line of the log looks.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;
use tracing::Level;

use crate::output::plain;

/// For whom a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Coloured,
    Json,
}

/// Names and values, as they were said.
type Said = [(&'static str, Value)];

/// One line, with its end.
pub(super) fn render(style: Style, level: Level, target: &str, message: &str, own: &Said, around: &Said) -> String {
    match style {
        Style::Json => json(level, target, message, own, around),
        style => pretty(style, level, target, message, own, around),
    }
}

/// An object: when, how bad, from where, what, and all that is known of it. What is said twice counts where it is said nearest.
pub(super) fn json(level: Level, target: &str, message: &str, own: &Said, around: &Said) -> String {
    let time = format!("{:.6}", Timestamp::now());
    let level = level.as_str().to_lowercase();
    let mut text = String::from("{");
    let mut known: Vec<String> = Vec::new();
    let head = [("time", time.as_str()), ("level", &level), ("target", target), ("message", message)];
    for (name, value) in head {
        member(&mut text, &mut known, name, &Value::from(value));
    }
    for (name, value) in own.iter().chain(around) {
        member(&mut text, &mut known, &camel(name), value);
    }
    text.push_str("}\n");
    text
}

fn member(text: &mut String, known: &mut Vec<String>, name: &str, value: &Value) {
    if known.iter().any(|known| known == name) {
        return;
    }
    if !known.is_empty() {
        text.push(',');
    }
    let _ = write!(text, "{}:{value}", Value::from(name));
    known.push(name.to_owned());
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

// Short: where in the code a line comes from is only said of what is not Orchestrix.
fn pretty(style: Style, level: Level, target: &str, message: &str, own: &Said, around: &Said) -> String {
    let (colour, dim, end) = match (style, level) {
        (Style::Coloured, Level::ERROR) => ("\u{1b}[31m", "\u{1b}[2m", "\u{1b}[0m"),
        (Style::Coloured, Level::WARN) => ("\u{1b}[33m", "\u{1b}[2m", "\u{1b}[0m"),
        (Style::Coloured, Level::INFO) => ("\u{1b}[32m", "\u{1b}[2m", "\u{1b}[0m"),
        (Style::Coloured, _) => ("\u{1b}[34m", "\u{1b}[2m", "\u{1b}[0m"),
        _ => ("", "", ""),
    };
    let mut text = format!("{dim}{:.3}{end} {colour}{level:>5}{end} ", Timestamp::now());
    if !target.starts_with("orchestrix") {
        let _ = write!(text, "{target}: ");
    }
    text += &plain(message);
    for (name, value) in own {
        let _ = write!(text, " {}={}", camel(name), shown(value));
    }
    let mut known: Vec<&str> = own.iter().map(|(name, _)| *name).collect();
    text += dim;
    for (name, value) in around {
        if !known.contains(name) {
            known.push(name);
            let _ = write!(text, " {}={}", camel(name), shown(value));
        }
    }
    text += end;
    text.push('\n');
    text
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() || text.contains([' ', '"', '=']) => plain(&format!("{text:?}")),
        Value::String(text) => plain(text),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Vec<(&'static str, Value)> {
        vec![("retry_in", "5s".into()), ("jobs", 3.into()), ("level", "no".into()), ("job_id", "inner".into())]
    }

    fn around() -> Vec<(&'static str, Value)> {
        vec![("job_id", "outer".into()), ("correlation_id", "a \"b\"\u{1b}[31m\n".into())]
    }

    #[test]
    fn json_is_one_flat_object_a_line() {
        let line = json(Level::WARN, "here", "two\nlines", &own(), &around());
        assert_eq!(line.matches('\n').count(), 1);
        let object: serde_json::Map<String, Value> = serde_json::from_str(&line).unwrap();
        let time = object["time"].as_str().unwrap();
        assert!(time.ends_with('Z') && time.parse::<Timestamp>().is_ok(), "{time}");
        assert_eq!((&object["level"], &object["message"]), (&"warn".into(), &"two\nlines".into()));
        assert_eq!((&object["retryIn"], &object["jobs"]), (&"5s".into(), &3.into()));
        assert_eq!((&object["jobId"], &object["correlationId"]), (&"inner".into(), &around()[1].1));
        assert_eq!(object.len(), 8);
        assert_eq!(line.matches("jobId").count(), 1);
    }

    #[test]
    fn a_line_for_people_is_short_and_cannot_steer_the_terminal() {
        let line = pretty(Style::Plain, Level::WARN, "orchestrix_worker", "so\u{7}", &own()[..2], &around());
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(time.parse::<Timestamp>().is_ok(), "{time}");
        assert_eq!(rest, " WARN so\\u{7} retryIn=5s jobs=3 jobId=outer correlationId=\"a \\\"b\\\"\\u{1b}[31m\\n\"\n");
        assert!(pretty(Style::Plain, Level::INFO, "hyper", "m", &[], &[]).ends_with(" INFO hyper: m\n"));
        assert!(pretty(Style::Coloured, Level::INFO, "orchestrix", "m", &[], &[]).contains('\u{1b}'));
    }
}
