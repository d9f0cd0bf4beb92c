//! Benchmarks of Orchestrix, each beside the raw limit of the same machine in the same minute.
//!
//! A number of jobs a second says little: it depends on the disk, the processor and the neighbours. So every figure is
//! measured in turns with the least that PostgreSQL could be asked to do for the same jobs, by the same driver, and
//! what counts is the ratio of the two. `README.md` says how to read them.
//!
//! The server must be private: its log is filled, checkpoints are forced, databases come and go. Others are refused.

mod arguments;
mod backlog;
mod bulk;
mod drain;
mod figure;
mod jobs;
mod latency;
mod measure;
mod memory;
mod progress;
mod report;
mod sample;
mod server;
mod single;

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::{
    arguments::{Command, Request},
    figure::Figure,
    progress::Progress,
    report::{Report, Row},
    server::Server,
};

/// The environment variable that names the server: a URL without a database.
const SERVER: &str = "ORCHESTRIX_BENCH_POSTGRES";

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<ExitCode> {
    match Command::parse(std::env::args().skip(1))? {
        Command::Help => print!("{}", arguments::HELP),
        Command::DrainAlone { url, jobs } => memory::drain_alone(&url, jobs).await?,
        Command::StorePostgres(request) => {
            let report = store_postgres(&request).await?;
            print!("{report}");
            if request.strict && report.missed() {
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn store_postgres(request: &Request) -> Result<Report> {
    let url = std::env::var(SERVER)
        .with_context(|| format!("{SERVER} must name a private server; cargo xtask bench does"))?;
    let server = Server::connect(&url).await?;
    let progress = Progress::new(request.figures.iter().map(|figure| figure.steps(request.rounds)).sum());
    progress.step("getting the server's log ready");
    server.settle().await?;
    let mut report = Report::new(request.scale, request.rounds);
    for &figure in &request.figures {
        for row in measure(figure, &server, request, &progress).await.with_context(|| figure.name())? {
            report.add(row);
        }
    }
    progress.finish();
    Ok(report)
}

async fn measure(figure: Figure, server: &Server, request: &Request, progress: &Progress) -> Result<Vec<Row>> {
    let scale = request.scale;
    let pair = measure::Pair { figure, server, rounds: request.rounds, progress };
    Ok(match figure {
        Figure::Single => vec![pair.compare(&single::ours(scale), &single::limit(scale)).await?],
        Figure::Bulk => vec![pair.compare(&bulk::ours(scale), &bulk::limit(scale)).await?],
        Figure::Drain => vec![pair.compare(&backlog::empty(scale), &drain::limit(scale)).await?],
        Figure::Finished => vec![pair.compare(&backlog::finished(scale), &backlog::empty(scale)).await?],
        Figure::Pending => vec![pair.compare(&backlog::pending(scale), &backlog::empty(scale)).await?],
        Figure::Xmin => vec![pair.compare(&backlog::held(scale), &backlog::not_held(scale)).await?],
        Figure::Memory => vec![memory::measure(server, scale, progress).await?],
        Figure::Latency => latency::measure(server, scale, progress).await?,
    })
}
