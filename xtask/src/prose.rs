//! Checks on words: the pages name files that exist, and no file falls back into private vocabulary.

use std::{fs, process::Command};

use crate::crates::root;

/// Words that CONTRIBUTING.md bans: they hide who acts.
const BANNED: &str = "whoever|nobody|somebody|told";

/// How many lines may hold one of them, such as a quoted error of another program.
const ALLOWED: usize = 20;

/// Paths in backticks, as in `core/src/state.rs` or `server/src/live/`.
fn paths(page: &str) -> impl Iterator<Item = &str> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted.filter(|text| {
        let is_path = text.contains("/src/") && (text.ends_with(".rs") || text.ends_with('/'));
        is_path && !text.starts_with('/') && !text.contains([' ', '*', '{'])
    })
}

#[test]
fn pages_name_files_that_exist() {
    let mut missing = Vec::new();
    for page in ["docs/architecture.md", "docs/glossary.md", "CONTRIBUTING.md", "README.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for path in paths(&text) {
            if !root().join(path).exists() && !root().join("crates").join(path).exists() {
                missing.push(format!("{page}: {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn sources_and_pages_say_who_acts() {
    let found = Command::new("git")
        .args(["grep", "-nwiE", BANNED, "--", "crates", "docs", "README.md", ":!*/migrations/*"])
        .current_dir(root())
        .output()
        .unwrap();
    // 1: no match. Anything else means that git could not search.
    assert!(matches!(found.status.code(), Some(0 | 1)), "git grep: {}", String::from_utf8_lossy(&found.stderr));
    let lines = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(lines.lines().count() <= ALLOWED, "name the client, the worker, the operator instead:\n{lines}");
}

#[test]
fn a_path_differs_from_other_words_in_backticks() {
    let page = "`core/src/state.rs` `GET /ws` `server/src/live/` `JobState::next(event)` `/metrics/` `crates/*`";
    assert_eq!(paths(page).collect::<Vec<_>>(), ["core/src/state.rs", "server/src/live/"]);
}
