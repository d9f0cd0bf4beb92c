use clap::{Arg, Command};

use super::{value::ValueKind, *};
use crate::arguments::Cli;

fn root() -> Command {
    let mut root = Cli::with_environment();
    root.build();
    root
}

// Every command without subcommands, with its path.
fn leaves(command: &Command, path: &[String], found: &mut Vec<(Vec<String>, Command)>) {
    let inner: Vec<_> = command.get_subcommands().collect();
    if inner.is_empty() {
        found.push((path.to_vec(), command.clone()));
    }
    for command in inner {
        leaves(command, &[path, &[command.get_name().to_owned()]].concat(), found);
    }
}

/// A value that the flag accepts, in the syntax of the file and of the command line.
fn sample(flag: &Arg) -> (String, Option<String>) {
    let possible = flag.get_possible_values();
    let texts = possible.iter().map(|value| value.get_name()).chain([
        "one",
        "30s",
        "7",
        "2026-01-31T09:00:00Z",
        "127.0.0.1:0",
        "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70",
        "cpu=1",
        "0 9 * * *",
        "Europe/Berlin",
    ]);
    let name = flag.get_long().unwrap();
    let quoted = |text: &str| if text == "7" { text.to_owned() } else { format!("{text:?}") };
    match ValueKind::of(flag) {
        ValueKind::Switch => (format!("{name} = true\n"), None),
        kind => {
            let text = texts.into_iter().find(|text| value::parse(flag, text).is_ok());
            let text = text.unwrap_or_else(|| panic!("no sample for --{name}"));
            let value = if kind == ValueKind::List { format!("[{}]", quoted(text)) } else { quoted(text) };
            (format!("{name} = {value}\n"), Some(text.to_owned()))
        }
    }
}

#[test]
fn every_flag_of_every_command_can_be_set_in_the_file() {
    let mut found = Vec::new();
    leaves(&root(), &[], &mut found);
    let mut count = 0;
    for (path, command) in &found {
        let flags: Vec<(&Arg, (String, Option<String>))> =
            keys::flags(command).map(|flag| (flag, sample(flag))).collect();
        let file =
            format!("[{}]\n{}", path.join("."), flags.iter().map(|(_, (line, _))| line.as_str()).collect::<String>());
        let words = [&["orchestrix".to_owned()], &path[..]].concat();
        let given = Cli::with_environment().ignore_errors(true).try_get_matches_from(&words).unwrap();
        let settings = parse(&file, &Cli::with_environment(), &given);
        let settings = settings.unwrap_or_else(|errors| panic!("{file}: {errors:?}"));
        let all = Configuration { name: String::new(), settings }.append_flags(words.iter().map(Into::into).collect());
        let matches = Cli::with_environment().ignore_errors(true).try_get_matches_from(all).unwrap();
        let leaf = path.iter().fold(&matches, |matches, name| matches.subcommand_matches(name).unwrap());
        for (flag, (line, text)) in flags {
            let id = flag.get_id().as_str();
            assert_eq!(leaf.value_source(id), Some(ValueSource::CommandLine), "{path:?} {line}");
            let raw = leaf.get_raw(id).map(|values| values.map(|value| value.to_str().unwrap()).collect::<Vec<_>>());
            match text {
                Some(text) => assert_eq!(raw.unwrap(), [text], "{path:?} {line}"),
                None => assert!(leaf.get_flag(id), "{path:?} {line}"),
            }
            count += 1;
        }
    }
    assert!(found.len() > 25 && count > 250, "{} commands, {count} flags", found.len());
}

#[test]
fn the_template_lists_every_flag_and_its_defaults_are_valid() {
    let root = root();
    let template = template::template(&Cli::with_environment());
    let mut found = Vec::new();
    leaves(&root, &[], &mut found);
    for flag in found.iter().flat_map(|(_, command)| keys::flags(command)) {
        let line = format!("\n# {} = ", flag.get_long().unwrap());
        assert!(template.contains(&line), "{line}");
    }
    // Flags without a default show the name of their value, which is mostly not a valid one.
    let has_default = |name: &str| {
        let mut flags = found.iter().flat_map(|(_, command)| keys::flags(command));
        !flags.any(|flag| flag.get_long() == Some(name) && flag.get_default_values().is_empty())
    };
    let mut file = String::new();
    for line in template.lines() {
        let set =
            line.strip_prefix("# ").filter(|set| set.split_once(" = ").is_some_and(|(name, _)| has_default(name)));
        file += &(set.unwrap_or(line).to_owned() + "\n");
    }
    assert!(file.lines().filter(|line| line.contains(" = ") && !line.starts_with('#')).count() > 30, "{file}");
    let given = Cli::with_environment().try_get_matches_from(["orchestrix", "dev"]).unwrap();
    if let Err(errors) = parse(&file, &Cli::with_environment(), &given) {
        panic!("{file}{errors:?}");
    }
}
