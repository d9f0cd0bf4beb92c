//! Pages over millions of jobs: what operators and clients look at, asked of the real router on a PostgreSQL that has been in use for a week.
//!
//! There is no limit to compare with. A page is meant for a person who waits for it, so each has the same target, whatever it is about.

mod ask;
mod fill;
mod landmarks;
mod pages;
mod plans;
mod table;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, bail, ensure};
use orchestrix_server::InProcessApi;

use self::{ask::ask, landmarks::Landmarks, table::Table};
use crate::{
    arguments::HELP,
    backend,
    measure::Place as _,
    postgres::{self, Server},
    progress::Progress,
};

/// A run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Jobs that are completed or cancelled.
    pub(crate) finished: usize,
    /// Jobs that can be claimed.
    pub(crate) pending: usize,
    /// How often each page is asked for.
    pub(crate) rounds: usize,
    /// Where the plans of the statements go, if anywhere.
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
        // With fewer some landmark would be missing.
        ensure!(request.finished >= 10_000, "--finished must be at least 10000");
        ensure!(request.pending >= 1_000, "--pending must be at least 1000");
        Ok(request)
    }
}

/// Fills a database, asks for every page and prints how long each took.
pub(crate) async fn run(server: &Server, request: &Request) -> Result<ExitCode> {
    let progress = Progress::new(fill::steps(request) + pages::ALL.len() * (1 + usize::from(request.plans.is_some())));
    let database = server.create_database().await?;
    let client = postgres::connect(&database.url).await?;
    let local = InProcessApi::new(backend::open(&database.url).await?, "local:bench");
    fill::fill(&client, &local, &database.url, request, &progress).await?;
    server.checkpoint().await?;

    let landmarks = Landmarks::find(&client).await?;
    let mut table = Table::new(request);
    for page in pages::ALL {
        progress.step(page.path);
        let seen = ask(&local, page, &landmarks, request.rounds).await.with_context(|| page.path.to_owned())?;
        progress.note(&seen.to_string());
        table.add(seen);
        progress.done();
    }
    let forgotten = pages::forgotten(&local).await?;
    drop(local);
    if let Some(directory) = &request.plans {
        plans::write(directory, &client, &database, &landmarks, &progress).await.context("the plans")?;
    }
    server.drop_database(database).await?;
    progress.finish();
    print!("{table}");
    for path in forgotten {
        println!("Not asked for: GET {path}");
    }
    Ok(if request.strict && table.missed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
