//! Which flags a key sets, and the error for a key that sets none.

use clap::{Arg, ArgAction, Command};
use toml::de::{DeTable, DeValue};

use super::{ConfigError, value};
use crate::output::escape_control;

/// The similarity of names from which a suggestion is made; the same as clap's.
const MIN_SIMILARITY: f64 = 0.7;

/// The flag of this name, if the command has it and it can be set in a file.
pub(super) fn flag<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    flags(command).find(|flag| flag.get_long() == Some(name))
}

/// The flags of a command that can be set in a file.
pub(super) fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|flag| match flag.get_action() {
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version => false,
        // `--config` names the file itself.
        _ => flag.get_long().is_some_and(|name| name != "config"),
    })
}

/// Whether a flag means the same in every command that has it. The others, such as filters, have a variable with
/// another name and can only be set in their command's own table: the queue of new jobs must not filter lists.
pub(super) fn is_shared(flag: &Arg) -> bool {
    let name = flag.get_long().unwrap_or_default().replace('-', "_").to_uppercase();
    flag.get_env().is_some_and(|variable| variable.to_string_lossy().starts_with(&format!("ORCHESTRIX_{name}")))
}

/// Checks every key of a table, and of the tables in it.
pub(super) fn check(
    table: &DeTable<'_>,
    command: &Command,
    path: &mut Vec<String>,
    line: &impl Fn(usize) -> usize,
    errors: &mut Vec<ConfigError>,
) {
    for (key, value) in table {
        let name: &str = key.get_ref();
        if let (DeValue::Table(inner), Some(inner_command)) = (value.get_ref(), command.find_subcommand(name)) {
            path.push(name.to_owned());
            check(inner, inner_command, path, line, errors);
            path.pop();
            continue;
        }
        let mut flags = Vec::new();
        collect_flags(command, name, true, &mut flags);
        let text = match (value.get_ref(), flags.is_empty()) {
            (DeValue::Table(_), true) => Some(unknown_command(command, path, name)),
            (_, true) => Some(unknown_flag(command, path, name)),
            (value, false) => flags.iter().find_map(|flag| value::to_args(flag, value).err()),
        };
        if let Some(text) = text {
            errors
                .push(ConfigError { line: line(key.span().start), text: format!("`{}` {text}", escape_control(name)) });
        }
    }
}

// Every flag that a key in the table of this command sets.
fn collect_flags<'a>(command: &'a Command, name: &str, own: bool, flags: &mut Vec<&'a Arg>) {
    flags.extend(flag(command, name).filter(|flag| own || is_shared(flag)));
    command.get_subcommands().for_each(|inner| collect_flags(inner, name, false, flags));
}

fn table_name(path: &[String]) -> String {
    if path.is_empty() { "at the top level".to_owned() } else { format!("in [{}]", path.join(".")) }
}

fn unknown_command(command: &Command, path: &[String], name: &str) -> String {
    let similar = most_similar(name, command.get_subcommands().map(Command::get_name));
    let suggestion =
        similar.map(|similar| format!("; did you mean [{}]?", [path, &[similar.to_owned()]].concat().join(".")));
    format!("is not a command{}", suggestion.unwrap_or_default())
}

fn unknown_flag(command: &Command, path: &[String], name: &str) -> String {
    let here = table_name(path);
    if name == "config" {
        return "cannot be set in the file: it names the file".into();
    }
    // A flag of other commands.
    let mut tables = Vec::new();
    tables_with(command, name, path, &mut tables);
    if !tables.is_empty() {
        return format!("is not a flag {here}; it can be set in {}", tables.join(", "));
    }
    let mut names = Vec::new();
    names_below(command, &mut names);
    match most_similar(name, names.into_iter()) {
        Some(similar) => format!("is not a flag {here}; did you mean `{similar}`?"),
        None => format!("is not a flag {here}; `orchestrix config` prints all of them"),
    }
}

fn tables_with(command: &Command, name: &str, path: &[String], tables: &mut Vec<String>) {
    for inner in command.get_subcommands() {
        let path = [path, &[inner.get_name().to_owned()]].concat();
        if flag(inner, name).is_some() {
            tables.push(format!("[{}]", path.join(".")));
        }
        tables_with(inner, name, &path, tables);
    }
}

fn names_below<'a>(command: &'a Command, names: &mut Vec<&'a str>) {
    names.extend(flags(command).filter_map(Arg::get_long));
    command.get_subcommands().for_each(|inner| names_below(inner, names));
}

fn most_similar<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = names.map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    let similar = scored.filter(|(score, _)| *score > MIN_SIMILARITY);
    similar.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, candidate)| candidate)
}
