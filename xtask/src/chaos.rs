//! `cargo xtask chaos`: faults at random for as long as one likes. The faults and what must come of them are those of the tests.

use anyhow::{Context, Result, bail};
use orchestrix_testkit::install::{self, Server};

use crate::step::Step;

const USAGE: &str = "cargo xtask chaos leader [--minutes N]";
/// Unless told otherwise.
const MINUTES: f64 = 5.0;

/// Runs what the arguments name.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let minutes = minutes(arguments)?;
    install::ensure(Server::Postgres, || {
        println!("\n==> install postgresql: apt-get update, apt-get install postgresql");
    })?;
    // Without nextest's limit on the time of a test. The private server is the test's own, since it kills it.
    let command =
        "test -p orchestrix-coordinator --test suite -- --ignored --exact processes::chaos::chaos --nocapture";
    Step::cargo("chaos", command).env("ORCHESTRIX_CHAOS_MINUTES", minutes.to_string()).run()
}

fn minutes(arguments: &[String]) -> Result<f64> {
    let minutes = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["leader"] => MINUTES,
        ["leader", "--minutes", minutes] => {
            minutes.parse().with_context(|| format!("`{minutes}` is not a number of minutes"))?
        }
        _ => bail!("there is one so far: {USAGE}"),
    };
    if !(minutes > 0.0 && minutes <= 7.0 * 24.0 * 60.0) {
        bail!("--minutes must be more than none, and a week at most");
    }
    Ok(minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<f64> {
        minutes(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn minutes_may_be_left_out_and_must_make_sense() {
        assert!((parse("leader").unwrap() - MINUTES).abs() < f64::EPSILON);
        assert!((parse("leader --minutes 0.5").unwrap() - 0.5).abs() < f64::EPSILON);
        for line in
            ["", "follower", "leader --minutes", "leader --minutes many", "leader --minutes 0", "leader --minutes NaN"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
