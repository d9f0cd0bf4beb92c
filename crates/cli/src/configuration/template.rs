//! `orchestrix config`: a file with every flag and its default, all of it in comments.

use std::fmt::Write as _;

use anyhow::Result;
use clap::{Arg, Args, Command};

use super::{
    keys,
    value::{self, Kind},
};
use crate::{arguments::Cli, failure::Outcome, output::Output};

/// Print a file with every flag and its default, to begin an orchestrix.toml with
#[derive(Debug, Args)]
#[command(after_help = "\
./orchestrix.toml is read if it is there, or the file that --config names. The command line comes first, then the environment,
then the file. A key outside of any table is for every command that has the flag, one in a table for that command.

Example:
  orchestrix config > orchestrix.toml")]
pub(crate) struct Arguments {}

const HEAD: &str = "\
# Settings of the orchestrix command. Read from ./orchestrix.toml, or from the file that --config or ORCHESTRIX_CONFIG names.
# The command line comes first, then the environment, then this file. A key outside of any table is for every command that
# has the flag; filters stand in the table of their command alone.
";

pub(crate) fn run(_arguments: &Arguments, output: &Output) -> Result<Outcome> {
    output.raw(template(&Cli::with_environment()).as_bytes())?;
    Ok(Outcome::DONE)
}

/// The whole file.
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
        let _ = writeln!(text, "# (Not beside [{name}]; then in the tables of the commands that it is for.)");
    }
    let _ = writeln!(text, "# {name} = {}", example(flag));
}

// The default, or the name of what is missing.
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
    match Kind::of(flag) {
        Kind::Switch => "false".into(),
        Kind::List => format!("[{}]", items.join(", ")),
        Kind::One => items.concat(),
    }
}

fn literal(flag: &Arg, text: &str) -> String {
    let number = text.parse::<f64>().is_ok() && !value::takes_any_word(flag);
    if number { text.to_owned() } else { format!("{text:?}") }
}
