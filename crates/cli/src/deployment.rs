//! What stands in `deploy/` is held to what this program takes: every command line, and every variable.

use std::{collections::BTreeSet, fs, path::Path};

use clap::Command;

use crate::arguments::Cli;

/// Files, and how many command lines each of them has.
const FILES: [(&str, usize); 4] =
    [("Dockerfile", 2), ("compose.yaml", 4), ("orchestrix.service", 1), ("orchestrix-worker.service", 1)];

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The words of a list in brackets.
fn listed(text: &str) -> Vec<String> {
    let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
    // A comma in quotes is part of a word.
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in inner.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => words.push(String::new()),
            ' ' if !quoted => {}
            _ => words.last_mut().expect("there is one from the beginning").push(letter),
        }
    }
    words
}

/// The command lines of ours in a file, without the program's name.
fn command_lines(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().map(str::trim).filter_map(|line| {
        if let Some(words) = line.strip_prefix("ExecStart=/usr/local/bin/orchestrix ") {
            return Some(words.split_whitespace().map(str::to_owned).collect());
        }
        let words = listed(["command: ", "CMD "].iter().find_map(|start| line.strip_prefix(start))?);
        match words.iter().position(|word| word == "orchestrix") {
            Some(place) => Some(words[place + 1..].to_vec()),
            None => Some(words).filter(|words| words[0] != "postgres"),
        }
    });
    lines.collect()
}

fn variables(command: &Command, known: &mut BTreeSet<String>) {
    let names = command.get_arguments().filter_map(|argument| argument.get_env());
    known.extend(names.map(|name| name.to_string_lossy().into_owned()));
    command.get_subcommands().for_each(|inner| variables(inner, known));
}

#[test]
fn every_command_line_is_one_that_is_taken() {
    for (name, count) in FILES {
        let lines = command_lines(&read(name));
        assert_eq!(lines.len(), count, "{name}: {lines:?}");
        for line in lines {
            let words = ["orchestrix".to_owned()].into_iter().chain(line.clone());
            let taken = Cli::with_environment().try_get_matches_from(words);
            assert!(taken.is_ok(), "{name}: {line:?}: {}", taken.unwrap_err());
        }
    }
}

#[test]
fn every_variable_is_one_that_is_read() {
    let mut known = BTreeSet::new();
    variables(&Cli::with_environment(), &mut known);
    for (name, _) in FILES {
        let text = read(name);
        let used: BTreeSet<&str> = text
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .filter(|word| word.starts_with("ORCHESTRIX_"))
            .collect();
        assert!(!used.is_empty(), "{name}");
        let unknown: Vec<_> = used.iter().filter(|word| !known.contains(**word)).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
    }
}

#[test]
fn whoever_drains_has_time_for_it() {
    for name in ["compose.yaml", "orchestrix.service", "orchestrix-worker.service"] {
        let text = read(name);
        let seconds = |after: &str| -> Vec<u32> {
            let found = text
                .split(after)
                .skip(1)
                .filter_map(|rest| rest.trim_start_matches([',', ' ', '=', ':']).split('s').next());
            found.filter_map(|number| number.parse().ok()).collect()
        };
        let drains = seconds("--drain-timeout");
        let patience = [seconds("TimeoutStopSec"), seconds("stop_grace_period")].concat();
        assert!(!drains.is_empty() && !patience.is_empty(), "{name}");
        assert!(patience.iter().min() > drains.iter().max(), "{name}: {drains:?} {patience:?}");
    }
}
