//! Converts a TOML value to command-line arguments. The flag's own parser validates it; errors never show the value.

use std::error::Error;

use clap::{
    Arg, ArgAction, Command,
    error::{ContextKind, ContextValue, ErrorKind},
};
use toml::de::DeValue;

/// The kind of value that a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// `true` or `false`.
    Switch,
    /// An array.
    List,
    /// One value.
    Single,
}

impl ValueKind {
    pub(super) fn of(flag: &Arg) -> Self {
        match flag.get_action() {
            ArgAction::SetTrue => Self::Switch,
            ArgAction::Append => Self::List,
            _ => Self::Single,
        }
    }
}

/// The arguments for a flag with this value, or why the value is invalid.
pub(super) fn to_args(flag: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let name = flag.get_long().unwrap_or_default();
    let argument = |value: &DeValue<'_>| text(flag, value).map(|text| format!("--{name}={text}"));
    match (ValueKind::of(flag), value) {
        (ValueKind::Switch, DeValue::Boolean(true)) => Ok(vec![format!("--{name}")]),
        (ValueKind::Switch, DeValue::Boolean(false)) => Ok(Vec::new()),
        (ValueKind::Switch, _) => Err("must be true or false".into()),
        (ValueKind::List, DeValue::Array(items)) if items.is_empty() => Err("is an empty list: remove it".into()),
        (ValueKind::List, DeValue::Array(items)) => {
            let items: Vec<&DeValue<'_>> = items.iter().map(|item| item.get_ref()).collect();
            let delimiter = flag.get_value_delimiter();
            let has_delimiter = |item: &&DeValue<'_>| {
                item.as_str().is_some_and(|text| delimiter.is_some_and(|delimiter| text.contains(delimiter)))
            };
            match items.iter().any(has_delimiter) {
                true => Err("must be a list of single items: no item may contain a comma".into()),
                false => items.into_iter().map(argument).collect(),
            }
        }
        (ValueKind::List, _) => Err("must be a list, such as [\"a\", \"b\"]".into()),
        (ValueKind::Single, value) => Ok(vec![argument(value)?]),
    }
}

fn text(flag: &Arg, value: &DeValue<'_>) -> Result<String, String> {
    let text = match value {
        DeValue::String(text) => text.to_string(),
        // As text: the flag's parser checks the range.
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Integer(_) => return Err("must be a decimal number".into()),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Boolean(_) | DeValue::Array(_) | DeValue::Table(_) => {
            return Err(format!("must be a single value{}", expectation(flag)));
        }
    };
    if accepts_any_text(flag) && !value.is_str() {
        return Err("must be a string, in quotes".into());
    }
    parse(flag, &text).map_err(|error| {
        let message = error.source().map(ToString::to_string);
        let safe = message.filter(|message| !value.is_str() || text.is_empty() || !message.contains(&text));
        reason(flag, &error, safe)
    })?;
    if !accepts_any_text(flag) && value.is_str() && text.parse::<f64>().is_ok() {
        return Err("must be a number, without quotes".into());
    }
    Ok(text)
}

/// Whether a flag accepts any text, rather than a number, a time or an address.
pub(super) fn accepts_any_text(flag: &Arg) -> bool {
    parse(flag, "one").is_ok()
}

/// Validates a text with the flag's own parser.
pub(super) fn parse(flag: &Arg, text: &str) -> Result<(), clap::Error> {
    let argument = Arg::new("value").long("value").value_parser(flag.get_value_parser().clone());
    let command = Command::new("file").no_binary_name(true).disable_help_flag(true).arg(argument);
    command.try_get_matches_from([format!("--value={text}")]).map(drop)
}

fn reason(flag: &Arg, error: &clap::Error, message: Option<String>) -> String {
    match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(values))) if !values.is_empty() => {
            format!("must be one of {}", values.join(", "))
        }
        _ => match message {
            Some(message) if message.starts_with("must") => message,
            Some(message) => format!("is invalid: {message}{}", expectation(flag)),
            None => format!("is invalid{}", expectation(flag)),
        },
    }
}

// What the flag expects: its default, or its help.
fn expectation(flag: &Arg) -> String {
    let defaults: Vec<_> = flag.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    match (defaults.is_empty(), flag.get_help()) {
        (false, _) => format!("; the default is {}", defaults.join(",")),
        (true, Some(help)) => format!("; {flag}: {help}"),
        (true, None) => format!("; see {flag}"),
    }
}
