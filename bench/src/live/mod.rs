//! Live updates: a server and a worker as processes of their own, jobs at a steady rate, and those who follow them.
//!
//! There is no limit to compare with. What is promised is a time, that no end is missed and how much memory very many connections take, on
//! either database.

mod followers;
mod ledger;
mod load;
mod phases;
mod socket;
mod table;
mod worker;

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use self::table::Table;
use crate::{
    arguments::HELP, backend::Backend, http::allow_connections, postgres::Server, progress::Progress, sqlite::Files,
};

/// A run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The one database to do it on, if not on both.
    pub(crate) on: Option<Backend>,
    /// How long jobs are recorded, and how many a second.
    pub(crate) seconds: usize,
    pub(crate) rate: usize,
    /// How many WebSockets there are at once.
    pub(crate) sockets: usize,
    /// How many jobs end at once before the last measurement on PostgreSQL.
    pub(crate) burst: usize,
    pub(crate) strict: bool,
}

impl Request {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut request = Self { on: None, seconds: 30, rate: 300, sockets: 1_000, burst: 500_000, strict: false };
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<usize> {
                let number = arguments.next().with_context(|| format!("{argument} needs a number"))?;
                number.parse().with_context(|| argument.clone())
            };
            match argument.as_str() {
                "--quick" => (request.seconds, request.sockets, request.burst) = (3, 100, 50_000),
                "--seconds" => request.seconds = number()?,
                "--rate" => request.rate = number()?,
                "--sockets" => request.sockets = number()?,
                "--burst" => request.burst = number()?,
                "--on" => {
                    request.on = Some(match arguments.next().as_deref() {
                        Some("postgres") => Backend::Postgres,
                        Some("sqlite") => Backend::Sqlite,
                        _ => bail!("--on is postgres or sqlite"),
                    });
                }
                "--strict" => request.strict = true,
                other => bail!("`{other}` is not an option:\n\n{HELP}"),
            }
        }
        ensure!(request.seconds > 0 && request.rate > 0, "--seconds and --rate must be at least 1");
        Ok(request)
    }

    fn is_on(&self, backend: Backend) -> bool {
        self.on.is_none_or(|on| on == backend)
    }
}

/// Measures all of it and prints a table. An end that nobody heard of fails the run, whatever was asked for.
pub(crate) async fn run(server: Option<&Server>, request: &Request) -> Result<ExitCode> {
    allow_connections(2 * request.sockets + 1_000)?;
    let progress = Progress::new(
        phases::STEPS * [Backend::Sqlite, Backend::Postgres].iter().filter(|on| request.is_on(**on)).count(),
    );
    let mut table = Table::new(request);
    if request.is_on(Backend::Sqlite) {
        phases::all(&Files::new()?, request, &mut table, &progress).await.context("on SQLite")?;
    }
    if request.is_on(Backend::Postgres) {
        let server = server.context("a server of PostgreSQL is missing")?;
        phases::all(server, request, &mut table, &progress).await.context("on PostgreSQL")?;
    }
    progress.finish();
    print!("{table}");
    Ok(match table.missed_an_end() || request.strict && table.missed() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}
