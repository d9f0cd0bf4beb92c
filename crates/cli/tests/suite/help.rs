//! What the command says of itself.

use crate::support::{Ran, bare};

/// Every command with its help, found by following the lists of commands.
fn pages(path: &[&str], found: &mut Vec<(String, String)>) {
    let text = Ran::of(&mut bare(&[path, &["--help"]].concat())).done().stdout;
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
fn every_help_page_is_as_it_was() {
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
fn without_arguments_it_explains_itself() {
    let ran = Ran::of(bare(&[]).env("ORCHESTRIX_OUTPUT", "json")).ended(2, "Usage: orchestrix");
    assert!(ran.stderr.contains("Exit codes"), "{ran:?}");
}

#[test]
fn it_knows_its_version() {
    assert_eq!(
        Ran::of(&mut bare(&["--version"])).done().stdout,
        concat!("orchestrix ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn completions_know_commands_flags_and_values() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = Ran::of(&mut bare(&["completions", shell])).done().stdout;
        // Not every shell is told the values.
        let values: &[&str] = if ["bash", "fish", "zsh"].contains(&shell) { &["jsonl", "retrying"] } else { &[] };
        for word in [&["redrive", "idempotency-key"], values].concat() {
            assert!(script.contains(word), "{word} is missing for {shell}");
        }
    }
    Ran::of(&mut bare(&["completions", "cmd"])).ended(2, "invalid value 'cmd'");
}

#[test]
fn help_shows_no_value_of_the_environment() {
    let secret = "postgres://me:hunter2@host/db";
    let ran = Ran::of(bare(&["jobs", "list", "--help"]).env("ORCHESTRIX_DATABASE_URL", secret)).done();
    assert!(!ran.stdout.contains("hunter2"));
}
