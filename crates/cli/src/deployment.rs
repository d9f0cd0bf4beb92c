//! Tests that the command lines, flags and variables in `deploy/` and `docs/production.md` are valid.

use std::{collections::BTreeSet, fs, path::Path};

use clap::Command;

use crate::arguments::Cli;

/// The files, and the number of command lines in each.
const FILES: [(&str, usize); 5] = [
    ("deploy/Dockerfile", 1),
    ("deploy/compose.yaml", 4),
    ("deploy/orchestrix.service", 1),
    ("deploy/orchestrix-worker.service", 1),
    ("docs/production.md", 15),
];

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The items of a list in brackets.
fn parse_list(text: &str) -> Vec<String> {
    let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
    // A comma in quotes does not separate items.
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in inner.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => words.push(String::new()),
            ' ' if !quoted => {}
            _ => words.last_mut().expect("the vector starts with one item").push(letter),
        }
    }
    words
}

/// The `orchestrix` command lines in a file, without the program's name.
fn command_lines(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().map(str::trim).filter_map(|line| {
        if let Some(words) = line.strip_prefix("ExecStart=/usr/local/bin/orchestrix ") {
            return Some(words.split_whitespace().map(str::to_owned).collect());
        }
        let words = parse_list(["command: ", "CMD "].iter().find_map(|start| line.strip_prefix(start))?);
        match words.iter().position(|word| word == "orchestrix") {
            Some(position) => Some(words[position + 1..].to_vec()),
            None => Some(words).filter(|words| !["postgres", "bash"].contains(&words[0].as_str())),
        }
    });
    lines.collect()
}

/// The texts in backticks, and the lines of fenced blocks.
fn code_snippets(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            found.push(line);
        } else {
            // Every second part is between backticks.
            found.extend(line.split('`').skip(1).step_by(2));
        }
    }
    found
}

/// The `orchestrix` command lines in a Markdown page, with placeholders replaced.
fn markdown_command_lines(text: &str) -> Vec<Vec<String>> {
    let lines = code_snippets(text).into_iter().filter_map(|code| code.strip_prefix("orchestrix "));
    let words = |line: &str| {
        let words = line.split_whitespace().take_while(|word| *word != "#").map(|word| match word {
            "ID" => "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70".to_owned(),
            word => word.trim_matches('\'').to_owned(),
        });
        words.collect()
    };
    lines.map(words).collect()
}

fn flags(command: &Command, known: &mut BTreeSet<String>) {
    known.extend(command.get_arguments().filter_map(|argument| Some(format!("--{}", argument.get_long()?))));
    command.get_subcommands().for_each(|inner| flags(inner, known));
}

fn variables(command: &Command, known: &mut BTreeSet<String>) {
    let names = command.get_arguments().filter_map(|argument| argument.get_env());
    known.extend(names.map(|name| name.to_string_lossy().into_owned()));
    command.get_subcommands().for_each(|inner| variables(inner, known));
}

#[test]
fn every_command_line_is_valid() {
    for (name, count) in FILES {
        let text = read(name);
        let lines = match name.ends_with(".md") {
            true => markdown_command_lines(&text),
            false => command_lines(&text),
        };
        assert_eq!(lines.len(), count, "{name}: {lines:?}");
        for line in lines {
            let words = ["orchestrix".to_owned()].into_iter().chain(line.clone());
            let parsed = Cli::with_environment().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{name}: {line:?}: {}", parsed.unwrap_err());
        }
    }
}

#[test]
fn every_flag_in_the_documentation_exists() {
    let mut known = BTreeSet::new();
    flags(&Cli::with_environment(), &mut known);
    let text = read("docs/production.md");
    let mentioned: BTreeSet<&str> = code_snippets(&text)
        .into_iter()
        .flat_map(|code| code.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-'))
        .filter(|word| word.starts_with("--"))
        .collect();
    assert!(mentioned.contains("--drain-timeout"), "{mentioned:?}");
    let unknown: Vec<_> = mentioned.iter().filter(|word| !known.contains(**word)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn every_environment_variable_exists() {
    let mut known = BTreeSet::new();
    variables(&Cli::with_environment(), &mut known);
    for (name, _) in FILES {
        let text = read(name);
        let used: BTreeSet<&str> = text
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .filter(|word| word.starts_with("ORCHESTRIX_"))
            .collect();
        // The image sets no variables.
        assert_eq!(used.is_empty(), name.ends_with("Dockerfile"), "{name}");
        let unknown: Vec<_> = used.iter().filter(|word| !known.contains(**word)).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
    }
}

#[test]
fn stop_timeouts_are_longer_than_drain_timeouts() {
    for name in ["deploy/compose.yaml", "deploy/orchestrix.service", "deploy/orchestrix-worker.service"] {
        let text = read(name);
        let seconds = |after: &str| -> Vec<u32> {
            let found = text
                .split(after)
                .skip(1)
                .filter_map(|rest| rest.trim_start_matches([',', ' ', '=', ':']).split('s').next());
            found.filter_map(|number| number.parse().ok()).collect()
        };
        let drains = seconds("--drain-timeout");
        let stop_timeouts = [seconds("TimeoutStopSec"), seconds("stop_grace_period")].concat();
        assert!(!drains.is_empty() && !stop_timeouts.is_empty(), "{name}");
        assert!(stop_timeouts.iter().min() > drains.iter().max(), "{name}: {drains:?} {stop_timeouts:?}");
    }
}
