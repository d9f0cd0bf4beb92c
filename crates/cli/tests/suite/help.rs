//! Help pages, version and shell completions.

use crate::harness::{CliOutput, orchestrix};

/// Collects the help page of every command, by following the lists of commands.
fn pages(path: &[&str], found: &mut Vec<(String, String)>) {
    let text = CliOutput::run(&mut orchestrix(&[path, &["--help"]].concat())).success().stdout;
    let commands: Vec<String> = text
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect();
    found.push((path.join(" "), text));
    for command in &commands {
        pages(&[path, &[command.as_str()]].concat(), found);
    }
}

#[test]
fn every_help_page_matches_its_snapshot() {
    let mut found = Vec::new();
    pages(&[], &mut found);
    assert!(found.len() > 20, "{}", found.len());
    for (path, text) in found {
        let is_group = text.contains("\nCommands:\n");
        assert!(is_group || text.contains("\nExample"), "{path} has no example");
        insta::assert_snapshot!(format!("help {path}").trim_end().replace(' ', "_"), text);
    }
}

#[test]
fn without_arguments_it_prints_its_usage() {
    let ran = CliOutput::run(orchestrix(&[]).env("ORCHESTRIX_OUTPUT", "json")).exits_with(2, "Usage: orchestrix");
    assert!(ran.stderr.contains("Exit codes"), "{ran:?}");
}

#[test]
fn it_prints_its_version() {
    assert_eq!(
        CliOutput::run(&mut orchestrix(&["--version"])).success().stdout,
        concat!("orchestrix ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn completions_contain_commands_flags_and_values() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = CliOutput::run(&mut orchestrix(&["completions", shell])).success().stdout;
        // Not every shell completes values.
        let values: &[&str] = if ["bash", "fish", "zsh"].contains(&shell) { &["jsonl", "retrying"] } else { &[] };
        for item in [&["redrive", "idempotency-key"], values].concat() {
            assert!(script.contains(item), "{item} is missing for {shell}");
        }
    }
    CliOutput::run(&mut orchestrix(&["completions", "cmd"])).exits_with(2, "invalid value 'cmd'");
}

#[test]
fn help_shows_no_value_of_the_environment() {
    let secret = "postgres://me:hunter2@host/db";
    let ran = CliOutput::run(orchestrix(&["jobs", "list", "--help"]).env("ORCHESTRIX_DATABASE_URL", secret)).success();
    assert!(!ran.stdout.contains("hunter2"));
}
