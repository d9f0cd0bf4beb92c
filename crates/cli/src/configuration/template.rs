//! `orchestrix config`: prints a file with every flag and its default, commented out.

use std::fmt::Write as _;

use anyhow::Result;
use clap::{Arg, Args, Command};

use super::{
    keys,
    value::{self, ValueKind},
};
use crate::{arguments::Cli, error::ExitStatus, output::Output};

/// Print a template of orchestrix.toml with every flag and its default
#[derive(Debug, Args)]
#[command(after_help = "\
Every command reads ./orchestrix.toml if it exists, or the file that --config names. The command line takes precedence
over the environment, and the environment over the file. A top-level key applies to every command that has the flag; a
key in a table applies to that command.

Example:
  orchestrix config > orchestrix.toml")]
pub(crate) struct Arguments {}

const HEAD: &str = "\
# Settings of the orchestrix command, read from ./orchestrix.toml or the file that --config or ORCHESTRIX_CONFIG names.
# The command line takes precedence over the environment, and the environment over this file.
# A top-level key applies to every command that has the flag; filters can only be set in the table of their command.
";

pub(crate) fn run(_arguments: &Arguments, output: &Output) -> Result<ExitStatus> {
    output.raw(template(&Cli::with_environment()).as_bytes())?;
    Ok(ExitStatus::SUCCESS)
}

/// The text of the template.
pub(super) fn template(command: &Command) -> String {
    let mut text = HEAD.to_owned();
    for flag in keys::flags(command) {
        line(&mut text, flag, command.find_subcommand(flag.get_long().unwrap_or_default()).is_some());
    }
    tables(&mut text, command, &[]);
    text
}

fn tables(text: &mut String, command: &Command, path: &[&str]) {
    for inner in command.get_subcommands() {
        let path = [path, &[inner.get_name()]].concat();
        let mut flags = keys::flags(inner).peekable();
        if flags.peek().is_some() {
            let _ = write!(text, "\n[{}]\n", path.join("."));
        }
        for flag in flags {
            line(text, flag, false);
        }
        tables(text, inner, &path);
    }
}

fn line(text: &mut String, flag: &Arg, is_command: bool) {
    let name = flag.get_long().unwrap_or_default();
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let _ = write!(text, "\n# {help}\n");
    if is_command {
        let _ = writeln!(text, "# (If the file has a table [{name}], set this in the tables of the commands instead.)");
    }
    let _ = writeln!(text, "# {name} = {}", example(flag));
}

// The default, or the name of the value.
fn example(flag: &Arg) -> String {
    let delimiter = flag.get_value_delimiter();
    let defaults: Vec<String> = match flag.get_default_values() {
        [] => vec![flag.get_value_names().and_then(|names| names.first()).map_or("…", |name| name.as_str()).to_owned()],
        values => values.iter().map(|value| value.to_string_lossy().into_owned()).collect(),
    };
    let items = defaults.iter().flat_map(|text| match delimiter {
        Some(delimiter) => text.split(delimiter).collect::<Vec<_>>(),
        None => vec![text.as_str()],
    });
    let items: Vec<String> = items.map(|item| literal(flag, item)).collect();
    match ValueKind::of(flag) {
        ValueKind::Switch => "false".into(),
        ValueKind::List => format!("[{}]", items.join(", ")),
        ValueKind::Single => items.concat(),
    }
}

fn literal(flag: &Arg, text: &str) -> String {
    let number = text.parse::<f64>().is_ok() && !value::accepts_any_text(flag);
    if number { text.to_owned() } else { format!("{text:?}") }
}
