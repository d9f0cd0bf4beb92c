//! `cargo xtask chaos`: injects random faults for a given time. Faults and invariants are those of the tests.

use anyhow::{Context, Result, bail};
use orchestrix_testkit::install::{self, ServerPackage};

use crate::step::Step;

const USAGE: &str = "cargo xtask chaos leader|workers|schedules [--minutes N]";

/// A chaos run, which is an ignored test.
#[derive(Debug)]
struct Chaos {
    name: &'static str,
    package: &'static str,
    test: &'static str,
    /// The default duration.
    minutes: f64,
}

const ALL: [Chaos; 3] = [
    Chaos { name: "leader", package: "orchestrix-coordinator", test: "processes::chaos::chaos", minutes: 5.0 },
    Chaos { name: "workers", package: "orchestrix-worker", test: "processes::chaos::chaos", minutes: 2.0 },
    Chaos {
        name: "schedules",
        package: "orchestrix-coordinator",
        test: "processes::schedules::chaos::chaos",
        minutes: 5.0,
    },
];

/// Runs the chaos test that the arguments name.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (chaos, minutes) = parse(arguments)?;
    install::ensure(ServerPackage::Postgres, || {
        println!("\n==> install postgresql: apt-get update, apt-get install postgresql");
    })?;
    // By `cargo test`, because nextest limits the time of a test. The test starts its own server, since it kills it.
    let Chaos { package, test, .. } = chaos;
    let command = format!("test -p {package} --test suite -- --ignored --exact {test} --nocapture");
    Step::cargo("chaos", &command).env("ORCHESTRIX_CHAOS_MINUTES", minutes.to_string()).run()
}

fn parse(arguments: &[String]) -> Result<(&'static Chaos, f64)> {
    let Some((name, rest)) = arguments.split_first() else { bail!("{USAGE}") };
    let Some(chaos) = ALL.iter().find(|chaos| chaos.name == name) else { bail!("unknown chaos run `{name}`: {USAGE}") };
    let minutes = match rest.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => chaos.minutes,
        ["--minutes", minutes] => minutes.parse().with_context(|| format!("`{minutes}` is not a number of minutes"))?,
        _ => bail!("{USAGE}"),
    };
    if !(minutes > 0.0 && minutes <= 7.0 * 24.0 * 60.0) {
        bail!("--minutes must be more than 0 and at most 10080 (a week)");
    }
    Ok((chaos, minutes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<(&'static str, f64)> {
        let (chaos, minutes) = super::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())?;
        Ok((chaos.name, minutes))
    }

    #[test]
    fn minutes_are_optional_and_validated() {
        assert_eq!(parse("leader").unwrap(), ("leader", 5.0));
        assert_eq!(parse("workers").unwrap(), ("workers", 2.0));
        assert_eq!(parse("schedules").unwrap(), ("schedules", 5.0));
        assert_eq!(parse("leader --minutes 0.5").unwrap(), ("leader", 0.5));
        for line in [
            "",
            "follower",
            "leader --minutes",
            "leader --minutes many",
            "workers --minutes 0",
            "leader --minutes NaN",
            "workers leader",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
