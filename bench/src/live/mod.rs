//! Live updates: a server and a worker as separate processes, jobs at a steady rate, and subscribers.
//!
//! There is no limit to compare with. The targets are a latency, no missed end of a job, and the memory of many
//! connections, on both databases.

mod ledger;
mod load;
mod phases;
mod socket;
mod subscribers;
mod table;
mod worker;

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use self::table::Table;
use crate::{
    arguments::HELP, backend::Backend, http::allow_connections, postgres::Server, progress::Progress, sqlite::Files,
};

/// The arguments of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The only database, or `None` for both.
    pub(crate) on: Option<Backend>,
    /// How long jobs are enqueued, and how many per second.
    pub(crate) seconds: usize,
    pub(crate) rate: usize,
    /// Concurrent WebSockets.
    pub(crate) sockets: usize,
    /// Jobs that end at once before the last measurement on PostgreSQL.
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

/// Measures everything and prints a table. A missed end fails the run, with or without `--strict`.
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
        let server = server.context("PostgreSQL is required")?;
        phases::all(server, request, &mut table, &progress).await.context("on PostgreSQL")?;
    }
    progress.finish();
    print!("{table}");
    Ok(match table.missed_an_end() || request.strict && table.missed() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}
