//! `cargo xtask chaos`: faults at random for as long as one likes. The faults and what must come of them are those of the tests.

use anyhow::{Context, Result, bail};
use orchestrix_testkit::install::{self, Server};

use crate::step::Step;

const USAGE: &str = "cargo xtask chaos leader|workers|schedules [--minutes N]";

/// A run of faults, which is an ignored test.
#[derive(Debug)]
struct Chaos {
    name: &'static str,
    package: &'static str,
    test: &'static str,
    /// Unless told otherwise.
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

/// Runs what the arguments name.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (chaos, minutes) = parse(arguments)?;
    install::ensure(Server::Postgres, || {
        println!("\n==> install postgresql: apt-get update, apt-get install postgresql");
    })?;
    // Without nextest's limit on the time of a test. The private server is the test's own, since it kills it.
    let Chaos { package, test, .. } = chaos;
    let command = format!("test -p {package} --test suite -- --ignored --exact {test} --nocapture");
    Step::cargo("chaos", &command).env("ORCHESTRIX_CHAOS_MINUTES", minutes.to_string()).run()
}

fn parse(arguments: &[String]) -> Result<(&'static Chaos, f64)> {
    let Some((name, rest)) = arguments.split_first() else { bail!("{USAGE}") };
    let Some(chaos) = ALL.iter().find(|chaos| chaos.name == name) else { bail!("there is no `{name}`: {USAGE}") };
    let minutes = match rest.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => chaos.minutes,
        ["--minutes", minutes] => minutes.parse().with_context(|| format!("`{minutes}` is not a number of minutes"))?,
        _ => bail!("{USAGE}"),
    };
    if !(minutes > 0.0 && minutes <= 7.0 * 24.0 * 60.0) {
        bail!("--minutes must be more than none, and a week at most");
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
    fn minutes_may_be_left_out_and_must_make_sense() {
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
