//! `orchestrix doctor`: prints the reports of `orchestrix-doctor`.

use anyhow::Result;
use clap::Args;
use orchestrix_doctor::{Check, Report, ServerUrl, Status, check_machine, check_postgres, check_server, check_sqlite};
use serde::Serialize;

use crate::{
    arguments::Global,
    database::Database,
    error::{CliError, ExitStatus},
    output::{Output, escape_control},
};

/// Check a database, a server and this machine, and print advice
#[derive(Debug, Args)]
#[command(after_help = "\
Checks the database, the server, or both, and changes nothing. Every check is ok, a note, a warning or a problem. The
exit code is 1 if there is a problem, and 5 if the database or the server cannot be reached.

Examples:
  orchestrix doctor --database postgres://app@db/app
  orchestrix doctor --server https://jobs.example.com --output json")]
pub(crate) struct Arguments {}

#[derive(Debug, Serialize)]
struct DoctorOutput<'a> {
    checks: &'a [Check],
}

pub(crate) async fn run(_: &Arguments, global: &Global, output: &Output) -> Result<ExitStatus> {
    let non_empty = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let server = non_empty(&global.server)
        .map(|text| text.parse::<ServerUrl>().map_err(|error| CliError::Usage(format!("--server {error}"))))
        .transpose()?;
    let database = non_empty(&global.database).map(|_| Database::from_arguments(global)).transpose()?;
    if server.is_none() && database.is_none() {
        let text = "nothing to check: set --database to postgres://… or sqlite:PATH, or --server to a URL, or both";
        return Err(CliError::Usage(text.into()).into());
    }
    let mut reports = Vec::new();
    if let Some(database) = database {
        let label = database.to_string();
        reports.push(match database {
            Database::Postgres { options, .. } => check_postgres(options, &label, global.connect_timeout).await,
            Database::Sqlite(options) => check_sqlite(options).await,
            Database::Memory => {
                let text = "nothing to check: memory: exists only inside the process that opened it";
                return Err(CliError::Usage(text.into()).into());
            }
        });
    }
    if let Some(url) = server {
        reports.push(check_server(&url, global.api_key().as_deref(), global.connect_timeout).await);
    }
    let transport = Check::ok("transport", "none is configured: workers claim jobs from the database or a server");
    reports.push(Report { checks: vec![transport], unreachable: false });
    reports.push(check_machine());
    let unreachable = reports.iter().any(|report| report.unreachable);
    let checks: Vec<Check> = reports.into_iter().flat_map(|report| report.checks).collect();
    output.show(&DoctorOutput { checks: &checks }, &checks, || describe(&checks))?;
    Ok(exit_status(&checks, unreachable))
}

fn exit_status(checks: &[Check], unreachable: bool) -> ExitStatus {
    match checks.iter().any(|check| check.status == Status::Problem) {
        _ if unreachable => ExitStatus::UNREACHABLE,
        true => ExitStatus::FAILED,
        false => ExitStatus::SUCCESS,
    }
}

/// One line for each check, its advice below it, and the totals.
fn describe(checks: &[Check]) -> String {
    let mut text: String = checks.iter().map(describe_check).collect();
    let count = |status: Status, singular: &str, plural: &str| {
        let n = checks.iter().filter(|check| check.status == status).count();
        format!("{n} {}", if n == 1 { singular } else { plural })
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

fn describe_check(check: &Check) -> String {
    let mut text = format!("{:<8} {:<18} {}\n", check.status, check.name, escape_control(&check.detail));
    if let Some(advice) = &check.advice {
        text += &format!("{:<27} → {}\n", "", escape_control(advice));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_is_printed_below_the_check() {
        assert_eq!(describe_check(&Check::ok("clock", "fine")), "ok       clock              fine\n");
        let lines = describe_check(&Check::problem("clock", "a\u{1b}b", "set it"));
        assert_eq!(lines, "problem  clock              a\\u{1b}b\n                            → set it\n");
    }

    #[test]
    fn only_problems_fail_and_an_unreachable_target_takes_precedence() {
        let (ok, warning) = (Check::ok("a", ""), Check::warning("a", "", ""));
        let problem = Check::problem("a", "", "");
        assert_eq!(exit_status(&[ok.clone(), warning.clone()], false), ExitStatus::SUCCESS);
        assert_eq!(exit_status(&[ok.clone(), problem.clone()], false), ExitStatus::FAILED);
        assert_eq!(exit_status(std::slice::from_ref(&problem), true), ExitStatus::UNREACHABLE);
        let text = describe(&[ok, warning, problem]);
        assert!(text.ends_with("\n1 problem, 1 warning, 0 notes, 1 ok\n"), "{text}");
    }
}
