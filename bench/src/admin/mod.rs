//! Lists and details over millions of jobs: the real router on a PostgreSQL that looks as if used for a week.
//!
//! There is no limit to compare with. A person waits for each page, so all have the same target.

mod fill;
mod pages;
mod placeholders;
mod plans;
mod request;
mod table;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail, ensure};
use orchestrix_server::InProcessApi;

use self::{placeholders::Placeholders, request::request_page, table::Table};
use crate::{
    arguments::HELP,
    backend,
    measure::DatabaseHost as _,
    postgres::{self, Server},
    progress::Progress,
};

/// The arguments of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Completed and cancelled jobs.
    pub(crate) finished: usize,
    /// Claimable jobs.
    pub(crate) pending: usize,
    /// How often each page is requested.
    pub(crate) rounds: usize,
    /// The directory for query plans, if any.
    pub(crate) plans: Option<PathBuf>,
    pub(crate) strict: bool,
}

impl Request {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut request = Self { finished: 10_000_000, pending: 1_000_000, rounds: 20, plans: None, strict: false };
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<usize> {
                let number = arguments.next().with_context(|| format!("{argument} needs a number"))?;
                number.parse().with_context(|| argument.clone())
            };
            match argument.as_str() {
                "--quick" => (request.finished, request.pending) = (100_000, 10_000),
                "--finished" => request.finished = number()?,
                "--pending" => request.pending = number()?,
                "--rounds" => request.rounds = number()?,
                "--plans" => request.plans = Some(arguments.next().context("--plans needs a directory")?.into()),
                "--strict" => request.strict = true,
                other => bail!("`{other}` is not an option:\n\n{HELP}"),
            }
        }
        ensure!(request.rounds > 0, "--rounds must be at least 1");
        // With fewer rows some placeholders would have no value.
        ensure!(request.finished >= 10_000, "--finished must be at least 10000");
        ensure!(request.pending >= 1_000, "--pending must be at least 1000");
        Ok(request)
    }
}

/// Fills a database, requests every page and prints the timings.
pub(crate) async fn run(server: &Server, request: &Request) -> Result<ExitCode> {
    let progress = Progress::new(fill::steps(request) + pages::ALL.len() * (1 + usize::from(request.plans.is_some())));
    let database = server.create_database().await?;
    let client = postgres::connect(&database.url).await?;
    let local = InProcessApi::new(backend::open(&database.url).await?, "local:bench");
    fill::fill(&client, &local, &database.url, request, &progress).await?;
    server.checkpoint().await?;

    let placeholders = Placeholders::find(&client).await?;
    let mut table = Table::new(request);
    for page in pages::ALL {
        progress.step(page.path);
        let timing =
            request_page(&local, page, &placeholders, request.rounds).await.with_context(|| page.path.to_owned())?;
        progress.note(&timing.to_string());
        table.add(timing);
        progress.done();
    }
    let uncovered_paths = pages::uncovered_paths(&local).await?;
    drop(local);
    if let Some(directory) = &request.plans {
        plans::write(directory, &client, &database, &placeholders, &progress).await.context("the plans")?;
    }
    server.drop_database(database).await?;
    progress.finish();
    print!("{table}");
    for path in uncovered_paths {
        println!("Not covered: GET {path}");
    }
    Ok(if request.strict && table.missed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
