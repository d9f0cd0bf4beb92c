//! Which flags a key means, and what to say where it means none.

use clap::{Arg, ArgAction, Command};
use toml::de::{DeTable, DeValue};

use super::{Mistake, value};
use crate::output::plain;

/// How much alike a name must be to be what was meant, as clap has it.
const ALIKE: f64 = 0.7;

/// The flag of this name, if the command has it and it may stand in a file.
pub(super) fn flag<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    flags(command).find(|flag| flag.get_long() == Some(name))
}

/// The flags of a command that may stand in a file.
pub(super) fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|flag| match flag.get_action() {
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version => false,
        // It says which file that is.
        _ => flag.get_long().is_some_and(|name| name != "config"),
    })
}

/// Whether a flag means the same in every command that has it. Those that do not, such as filters, have a variable of
/// another name, and stand in their command's own table alone: where new jobs go narrows no list.
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
    mistakes: &mut Vec<Mistake>,
) {
    for (key, value) in table {
        let name: &str = key.get_ref();
        if let (DeValue::Table(inner), Some(inner_command)) = (value.get_ref(), command.find_subcommand(name)) {
            path.push(name.to_owned());
            check(inner, inner_command, path, line, mistakes);
            path.pop();
            continue;
        }
        let mut meant = Vec::new();
        collect(command, name, true, &mut meant);
        let text = match (value.get_ref(), meant.is_empty()) {
            (DeValue::Table(_), true) => Some(no_command(command, path, name)),
            (_, true) => Some(no_flag(command, path, name)),
            (value, false) => meant.iter().find_map(|flag| value::words(flag, value).err()),
        };
        if let Some(text) = text {
            mistakes.push(Mistake { line: line(key.span().start), text: format!("`{}` {text}", plain(name)) });
        }
    }
}

// Every flag that a key in the table of this command means.
fn collect<'a>(command: &'a Command, name: &str, own: bool, meant: &mut Vec<&'a Arg>) {
    meant.extend(flag(command, name).filter(|flag| own || is_shared(flag)));
    command.get_subcommands().for_each(|inner| collect(inner, name, false, meant));
}

fn place(path: &[String]) -> String {
    if path.is_empty() { "outside of any table".to_owned() } else { format!("in [{}]", path.join(".")) }
}

fn no_command(command: &Command, path: &[String], name: &str) -> String {
    let near = near(name, command.get_subcommands().map(Command::get_name));
    let near = near.map(|near| format!("; did you mean [{}]?", [path, &[near.to_owned()]].concat().join(".")));
    format!("is no command{}", near.unwrap_or_default())
}

fn no_flag(command: &Command, path: &[String], name: &str) -> String {
    let here = place(path);
    if name == "config" {
        return "cannot stand in the file: it names the file".into();
    }
    // Known by another name, or for other commands.
    let mut tables = Vec::new();
    tables_with(command, name, path, &mut tables);
    if !tables.is_empty() {
        return format!("is no flag {here}; it may stand in {}", tables.join(", "));
    }
    let mut names = Vec::new();
    names_below(command, &mut names);
    match near(name, names.into_iter()) {
        Some(near) => format!("is no flag {here}; did you mean `{near}`?"),
        None => format!("is no flag {here}; `orchestrix config` prints all of them"),
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

fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = names.map(|known| (strsim::jaro_winkler(name, known), known)).filter(|(alike, _)| *alike > ALIKE);
    alike.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}
