//! From a TOML value to the words of a command line. The flag's own parser decides; what it says never shows the value.

use std::error::Error;

use clap::{
    Arg, ArgAction, Command,
    error::{ContextKind, ContextValue, ErrorKind},
};
use toml::de::DeValue;

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `true` or `false`.
    Switch,
    /// An array.
    List,
    /// One value.
    One,
}

impl Kind {
    pub(super) fn of(flag: &Arg) -> Self {
        match flag.get_action() {
            ArgAction::SetTrue => Self::Switch,
            ArgAction::Append => Self::List,
            _ => Self::One,
        }
    }
}

/// What stands on a command line for a flag with this value; what is wrong with it otherwise.
pub(super) fn words(flag: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let name = flag.get_long().unwrap_or_default();
    let one = |value: &DeValue<'_>| text(flag, value).map(|text| format!("--{name}={text}"));
    match (Kind::of(flag), value) {
        (Kind::Switch, DeValue::Boolean(true)) => Ok(vec![format!("--{name}")]),
        (Kind::Switch, DeValue::Boolean(false)) => Ok(Vec::new()),
        (Kind::Switch, _) => Err("must be true or false".into()),
        (Kind::List, DeValue::Array(items)) if items.is_empty() => Err("is an empty list: leave it out".into()),
        (Kind::List, DeValue::Array(items)) => {
            let items: Vec<&DeValue<'_>> = items.iter().map(|item| item.get_ref()).collect();
            let delimiter = flag.get_value_delimiter();
            let apart = |item: &&DeValue<'_>| {
                item.as_str().is_some_and(|text| delimiter.is_some_and(|delimiter| text.contains(delimiter)))
            };
            match items.iter().any(apart) {
                true => Err("must be a list of single items: no item may hold a comma".into()),
                false => items.into_iter().map(one).collect(),
            }
        }
        (Kind::List, _) => Err("must be a list, such as [\"a\", \"b\"]".into()),
        (Kind::One, value) => Ok(vec![one(value)?]),
    }
}

fn text(flag: &Arg, value: &DeValue<'_>) -> Result<String, String> {
    let text = match value {
        DeValue::String(text) => text.to_string(),
        // By their texts only: a flag has its own idea of what is too large.
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Integer(_) => return Err("must be a decimal number".into()),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Boolean(_) | DeValue::Array(_) | DeValue::Table(_) => {
            return Err(format!("must be a single value{}", like(flag)));
        }
    };
    if takes_any_word(flag) && !value.is_str() {
        return Err("must be a string, in quotes".into());
    }
    parse(flag, &text).map_err(|error| {
        let said = error.source().map(ToString::to_string);
        reason(flag, &error, said.filter(|said| !value.is_str() || text.is_empty() || !said.contains(&text)))
    })?;
    if !takes_any_word(flag) && value.is_str() && text.parse::<f64>().is_ok() {
        return Err("must be a number, without quotes".into());
    }
    Ok(text)
}

/// Whether it is text that a flag takes, rather than numbers, times or addresses.
pub(super) fn takes_any_word(flag: &Arg) -> bool {
    parse(flag, "one").is_ok()
}

/// Asks the flag's own parser.
pub(super) fn parse(flag: &Arg, text: &str) -> Result<(), clap::Error> {
    let alone = Arg::new("value").long("value").value_parser(flag.get_value_parser().clone());
    let command = Command::new("file").no_binary_name(true).disable_help_flag(true).arg(alone);
    command.try_get_matches_from([format!("--value={text}")]).map(drop)
}

fn reason(flag: &Arg, error: &clap::Error, said: Option<String>) -> String {
    match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(values))) if !values.is_empty() => {
            format!("must be one of {}", values.join(", "))
        }
        _ => match said {
            Some(said) if said.starts_with("must") => said,
            Some(said) => format!("is refused: {said}{}", like(flag)),
            None => format!("is refused{}", like(flag)),
        },
    }
}

// What would be right.
fn like(flag: &Arg) -> String {
    let defaults: Vec<_> = flag.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    match (defaults.is_empty(), flag.get_help()) {
        (false, _) => format!("; by default it is {}", defaults.join(",")),
        (true, Some(help)) => format!("; {flag}: {help}"),
        (true, None) => format!("; see {flag}"),
    }
}
