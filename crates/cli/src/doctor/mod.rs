//! `orchestrix doctor`: looks at a database, a server and this machine, and says what to do.
//!
//! Facts are gathered first (by `diagnose` of each backend), then judged by functions that only compute: every verdict has its
//! test. Nothing is ever changed. Each look has its time, and one that fails is told and passed over.

mod check;
mod clock;
mod machine;
mod postgres;
mod server;
mod sqlite;
mod standing;
mod ward;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use self::check::{Check, Status};
use crate::{
    arguments::Global,
    database::Database,
    failure::{Failure, Outcome},
    output::Output,
};

/// Find out what is wrong, and what to do about it
#[derive(Debug, Args)]
#[command(after_help = "\
Looks at the database, at a server, or at both; changes nothing. Every check is ok, a note, a warning or a problem. The exit
code is 1 if there is a problem and 5 if the database or the server cannot be reached.

Example:
  orchestrix doctor --database postgres://app@db/app
  orchestrix doctor --server https://jobs.example.com --output json")]
pub(crate) struct Arguments {}

/// What was found at one place.
#[derive(Debug)]
struct Report {
    checks: Vec<Check>,
    /// There is nobody there.
    unreachable: bool,
}

#[derive(Debug, Serialize)]
struct View<'a> {
    checks: &'a [Check],
}

pub(crate) async fn run(_: &Arguments, global: &Global, output: &Output) -> Result<Outcome> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let server = given(&global.server).map(|text| server::address(&text)).transpose()?;
    let database = given(&global.database).map(|_| Database::of(global)).transpose()?;
    if server.is_none() && database.is_none() {
        let text = "nothing to look at: give --database postgres://… or sqlite:PATH, or --server URL";
        return Err(Failure::Usage(text.into()).into());
    }
    let mut reports = Vec::new();
    if let Some(database) = database {
        let place = database.to_string();
        reports.push(match database {
            Database::Postgres { options, .. } => postgres::examine(options, &place, global.connect_timeout).await,
            Database::Sqlite(options) => sqlite::examine(options).await,
            Database::Memory => {
                let text = "memory: ends with the process that opened it: there is nothing to look at";
                return Err(Failure::Usage(text.into()).into());
            }
        });
    }
    if let Some(url) = server {
        reports.push(server::examine(&url, global.api_key().as_deref(), global.connect_timeout).await);
    }
    reports.push(Report {
        checks: vec![
            Check::ok("transport", "none is configured: workers take jobs from the database or over a server"),
            machine::open_files(),
        ],
        unreachable: false,
    });
    let unreachable = reports.iter().any(|report| report.unreachable);
    let checks: Vec<Check> = reports.into_iter().flat_map(|report| report.checks).collect();
    output.show(&View { checks: &checks }, &checks, || shown(&checks))?;
    Ok(outcome(&checks, unreachable))
}

fn outcome(checks: &[Check], unreachable: bool) -> Outcome {
    match checks.iter().any(|check| check.status == Status::Problem) {
        _ if unreachable => Outcome::UNREACHABLE,
        true => Outcome::FAILED,
        false => Outcome::DONE,
    }
}

fn shown(checks: &[Check]) -> String {
    let mut text: String = checks.iter().map(Check::lines).collect();
    let count = |status: Status, one: &str, more: &str| {
        let n = checks.iter().filter(|check| check.status == status).count();
        format!("{n} {}", if n == 1 { one } else { more })
    };
    text += &format!(
        "\n{}, {}, {}, {}\n",
        count(Status::Problem, "problem", "problems"),
        count(Status::Warning, "warning", "warnings"),
        count(Status::Note, "note", "notes"),
        count(Status::Ok, "ok", "ok"),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_problems_fail_and_who_is_away_comes_first() {
        let (fine, warned) = (Check::ok("a", ""), Check::warning("a", "", ""));
        let wrong = Check::problem("a", "", "");
        assert_eq!(outcome(&[fine.clone(), warned.clone()], false), Outcome::DONE);
        assert_eq!(outcome(&[fine.clone(), wrong.clone()], false), Outcome::FAILED);
        assert_eq!(outcome(std::slice::from_ref(&wrong), true), Outcome::UNREACHABLE);
        let text = shown(&[fine, warned, wrong]);
        assert!(text.ends_with("\n1 problem, 1 warning, 0 notes, 1 ok\n"), "{text}");
    }
}
