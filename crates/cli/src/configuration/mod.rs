//! `orchestrix.toml`: flags that stand in a file.
//!
//! | module | what it owns |
//! |---|---|
//! | `keys` | which flags a key means, and what to say where it means none |
//! | `value` | from a TOML value to the words of a command line, by the flag's own parser |
//! | `template` | a file with every flag, as `orchestrix config` prints it |
//!
//! A key outside of any table is the flag of that name, for every command that has it; `[worker]` and `[jobs.enqueue]` are for
//! one command, `[jobs]` for its group; the innermost counts. What the command line or the environment says comes first. The
//! whole file is checked whichever command runs, and no message shows a value: there may be passwords among them.
//!
//! What is left is put on the command line, so that whatever clap checks about flags, it checks about these.

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

use crate::failure::Failure;

/// What is read if it is there and no other file is named.
const DEFAULT: &str = "orchestrix.toml";
/// The largest file that is read.
const MAX_BYTES: u64 = 1024 * 1024;
/// The most mistakes that are told at once.
const MAX_SHOWN: usize = 20;

/// A file that was read, and what it gives to the command that runs.
pub(crate) struct Configuration {
    name: String,
    settings: Settings,
}

/// What a file gives to one command, by flag.
type Settings = BTreeMap<String, Setting>;

struct Setting {
    line: usize,
    /// What it is on a command line.
    words: Vec<String>,
}

impl Configuration {
    /// Reads the file that was named, or the usual one if it is there; `None` if there is none. `found` is what the command
    /// line and the environment say.
    pub(crate) fn read(named: Option<&Path>, root: &Command, found: &ArgMatches) -> Result<Option<Self>, Failure> {
        let path = named.unwrap_or(Path::new(DEFAULT));
        let name = path.display().to_string();
        match contents(path, named.is_some()) {
            Ok(None) => Ok(None),
            Ok(Some(text)) => match take(&text, root, found) {
                Ok(settings) => Ok(Some(Self { name, settings })),
                Err(mistakes) => Err(Failure::Usage(tell(&name, mistakes))),
            },
            Err(why) => Err(Failure::Usage(format!("{name} {why}"))),
        }
    }

    /// The words of a command line, with those of the file.
    pub(crate) fn complete(&self, mut words: Vec<OsString>) -> Vec<OsString> {
        // After `--` nothing is a flag any more.
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let more = self.settings.values().flat_map(|setting| &setting.words).map(OsString::from);
        words.splice(end..end, more);
        words
    }

    /// Which of the flags that a text names stand in the file.
    pub(crate) fn explain(&self, text: &str) -> String {
        let named = |flag: &str| text.split([' ', '\'', '=', '\n']).any(|word| word.strip_prefix("--") == Some(flag));
        let lines = self.settings.iter().filter(|(flag, _)| named(flag));
        lines.map(|(flag, setting)| format!("  --{flag} stands in {}, line {}\n", self.name, setting.line)).collect()
    }
}

// What is wrong with one line.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mistake {
    line: usize,
    text: String,
}

fn tell(name: &str, mut mistakes: Vec<Mistake>) -> String {
    mistakes.sort_unstable();
    let more = mistakes.len().saturating_sub(MAX_SHOWN);
    mistakes.truncate(MAX_SHOWN);
    let mut text = format!("in {name}");
    for mistake in mistakes {
        text += &format!("\n  line {}: {}", mistake.line, mistake.text);
    }
    if more > 0 {
        text += &format!("\n  and {more} more");
    }
    text
}

fn contents(path: &Path, must_exist: bool) -> Result<Option<String>, String> {
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

// Checks all of the text, and takes from it what is for the command that runs.
fn take(text: &str, root: &Command, found: &ArgMatches) -> Result<Settings, Vec<Mistake>> {
    let line = |at: usize| 1 + text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count();
    let table = DeTable::parse(text).map_err(|error| {
        let line = line(error.span().map_or(0, |span| span.start));
        // Displayed, it would show the line itself.
        vec![Mistake { line, text: format!("is not TOML: {}", error.message().replace('\n', ", ")) }]
    })?;
    // Built, every command knows the global flags.
    let mut root = root.clone();
    root.build();
    let mut mistakes = Vec::new();
    keys::check(table.get_ref(), &root, &mut Vec::new(), &line, &mut mistakes);
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let path: Vec<_> = std::iter::successors(found.subcommand(), |(_, inner)| inner.subcommand()).collect();
    let runs = path.iter().try_fold(&root, |command, (name, _)| command.find_subcommand(name)).unwrap_or(&root);
    let found = path.last().map_or(found, |(_, found)| found);
    let mut settings = Settings::new();
    let mut table = Some(table.get_ref());
    for depth in 0..=path.len() {
        for (key, value) in table.into_iter().flatten() {
            let flag = keys::flag(runs, key.get_ref()).filter(|flag| depth == path.len() || keys::is_shared(flag));
            // What is no value of a flag is the table of a command: the rest was checked.
            if let Some(words) = flag.and_then(|flag| value::words(flag, value.get_ref()).ok()) {
                settings.insert(key.get_ref().to_string(), Setting { line: line(key.span().start), words });
            }
        }
        let name = path.get(depth).map_or("", |(name, _)| name);
        table = table.and_then(|table| table.get(name)).and_then(|inner| inner.get_ref().as_table());
    }
    settings.retain(|name, _| {
        let source = keys::flag(runs, name).and_then(|flag| found.value_source(flag.get_id().as_str()));
        !matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    });
    Ok(settings)
}

#[cfg(test)]
mod tests;
