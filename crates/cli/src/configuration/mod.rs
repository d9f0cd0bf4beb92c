//! `orchestrix.toml`: flags that are set in a file.
//!
//! | module | what it owns |
//! |---|---|
//! | `keys` | which flags a key sets, and the error for a key that sets none |
//! | `value` | converts a TOML value to arguments, by the flag's own parser |
//! | `template` | a file with every flag, as `orchestrix config` prints it |
//!
//! A top-level key sets the flag of that name for every command that has it; `[worker]` and `[jobs.enqueue]` are for
//! one command, `[jobs]` is for its group. The innermost table wins. The command line and the environment take
//! precedence over the file. The whole file is checked whichever command runs. No message shows a value, because it
//! may be a password.
//!
//! The settings are appended to the command line, so that clap validates them like any flag.

mod keys;
pub(crate) mod template;
mod value;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::{ErrorKind, Read},
    path::Path,
};

use clap::{ArgMatches, Command, parser::ValueSource};
use toml::de::DeTable;

use crate::error::CliError;

/// The file that is read if it exists and `--config` names no other.
const DEFAULT_FILE: &str = "orchestrix.toml";
/// The size limit of the file.
const MAX_BYTES: u64 = 1024 * 1024;
/// The most errors in one message.
const MAX_ERRORS: usize = 20;

/// A configuration file, reduced to the settings of the command that runs.
pub(crate) struct Configuration {
    name: String,
    settings: Settings,
}

/// The settings of one command, by flag.
type Settings = BTreeMap<String, Setting>;

struct Setting {
    line: usize,
    /// The flag with its value, as on the command line.
    args: Vec<String>,
}

impl Configuration {
    /// Reads the named file, or the default file if it exists; `None` if there is none. `given` holds what the command
    /// line and the environment set.
    pub(crate) fn read(named: Option<&Path>, root: &Command, given: &ArgMatches) -> Result<Option<Self>, CliError> {
        let path = named.unwrap_or(Path::new(DEFAULT_FILE));
        let name = path.display().to_string();
        match read_file(path, named.is_some()) {
            Ok(None) => Ok(None),
            Ok(Some(text)) => match parse(&text, root, given) {
                Ok(settings) => Ok(Some(Self { name, settings })),
                Err(errors) => Err(CliError::Usage(error_message(&name, errors))),
            },
            Err(why) => Err(CliError::Usage(format!("{name} {why}"))),
        }
    }

    /// Appends the settings to the arguments of a command line.
    pub(crate) fn append_flags(&self, mut args: Vec<OsString>) -> Vec<OsString> {
        // Before `--`, after which nothing is a flag.
        let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
        let settings = self.settings.values().flat_map(|setting| &setting.args).map(OsString::from);
        args.splice(end..end, settings);
        args
    }

    /// Says where in the file the flags are set that an error message names.
    pub(crate) fn locate_flags(&self, text: &str) -> String {
        let named = |flag: &str| text.split([' ', '\'', '=', '\n']).any(|word| word.strip_prefix("--") == Some(flag));
        let lines = self.settings.iter().filter(|(flag, _)| named(flag));
        lines.map(|(flag, setting)| format!("  --{flag} is set in {}, line {}\n", self.name, setting.line)).collect()
    }
}

/// The error in one line.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ConfigError {
    line: usize,
    text: String,
}

fn error_message(name: &str, mut errors: Vec<ConfigError>) -> String {
    errors.sort_unstable();
    let more = errors.len().saturating_sub(MAX_ERRORS);
    errors.truncate(MAX_ERRORS);
    let mut text = format!("{name} is invalid");
    for error in errors {
        text += &format!("\n  line {}: {}", error.line, error.text);
    }
    if more > 0 {
        text += &format!("\n  and {more} more");
    }
    text
}

fn read_file(path: &Path, must_exist: bool) -> Result<Option<String>, String> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && !must_exist => return Ok(None),
        file => file.map_err(|error| format!("cannot be read: {error}"))?,
    };
    let mut text = String::new();
    match file.take(MAX_BYTES + 1).read_to_string(&mut text) {
        Ok(_) if text.len() as u64 > MAX_BYTES => Err("is larger than 1 MiB".into()),
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

// Checks the whole text, and returns the settings of the command that runs.
fn parse(text: &str, root: &Command, given: &ArgMatches) -> Result<Settings, Vec<ConfigError>> {
    let line = |at: usize| 1 + text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count();
    let table = DeTable::parse(text).map_err(|error| {
        let line = line(error.span().map_or(0, |span| span.start));
        // Only the message: the error's Display would show the line with its value.
        vec![ConfigError { line, text: format!("is not TOML: {}", error.message().replace('\n', ", ")) }]
    })?;
    // Only a built command has the global flags.
    let mut root = root.clone();
    root.build();
    let mut errors = Vec::new();
    keys::check(table.get_ref(), &root, &mut Vec::new(), &line, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let path: Vec<_> = std::iter::successors(given.subcommand(), |(_, inner)| inner.subcommand()).collect();
    let command = path.iter().try_fold(&root, |parent, (name, _)| parent.find_subcommand(name)).unwrap_or(&root);
    let given = path.last().map_or(given, |(_, given)| given);
    let mut settings = Settings::new();
    let mut table = Some(table.get_ref());
    for depth in 0..=path.len() {
        for (key, value) in table.into_iter().flatten() {
            let flag = keys::flag(command, key.get_ref()).filter(|flag| depth == path.len() || keys::is_shared(flag));
            // Every value was checked, so what cannot be converted is the table of a command.
            if let Some(args) = flag.and_then(|flag| value::to_args(flag, value.get_ref()).ok()) {
                settings.insert(key.get_ref().to_string(), Setting { line: line(key.span().start), args });
            }
        }
        let name = path.get(depth).map_or("", |(name, _)| name);
        table = table.and_then(|table| table.get(name)).and_then(|inner| inner.get_ref().as_table());
    }
    settings.retain(|name, _| {
        let source = keys::flag(command, name).and_then(|flag| given.value_source(flag.get_id().as_str()));
        !matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    });
    Ok(settings)
}

#[cfg(test)]
mod tests;
