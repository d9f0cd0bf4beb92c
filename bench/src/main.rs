//! Benchmarks of Orchestrix, each beside the raw limit of the same machine in the same minute.
//!
//! A number of jobs a second says little: it depends on the disk, the processor and the neighbours. So every figure is
//! measured in turns with the least that the database could be asked to do for the same jobs, by the same driver, and
//! what counts is the ratio of the two. `README.md` says how to read them.
//!
//! | module | what it owns |
//! |---|---|
//! | `single`, `bulk`, `drain`, `backlog`, `memory`, `latency` | what our store does, whichever it is |
//! | `worker` | what the worker runtime makes of it |
//! | `schedules` | what schedules cost the node that leads |
//! | `coordinator` | what a running coordinator does, and what it costs others meanwhile |
//! | `http` | the server as a process, under wrk |
//! | `admin` | pages over millions of jobs |
//! | `live` | those who follow jobs |
//! | `postgres`, `sqlite` | where it does so, what is counted there, and the limits |
//! | `measure` | ours and the limit, in turns |

mod admin;
mod arguments;
mod backend;
mod backlog;
mod bulk;
mod coordinator;
mod drain;
mod figure;
mod http;
mod jobs;
mod latency;
mod live;
mod measure;
mod memory;
mod postgres;
mod progress;
mod report;
mod sample;
mod schedules;
mod single;
mod sqlite;
mod worker;

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::{
    arguments::{Command, Request},
    backend::Backend,
    measure::Place,
    postgres::Server,
    progress::Progress,
    report::Report,
    sqlite::Files,
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
        Command::WorkAlone { url, jobs } => worker::work_alone(&url, jobs).await?,
        Command::Live(request) => {
            let server = match request.on {
                Some(Backend::Sqlite) => None,
                _ => Some(server().await?),
            };
            return live::run(server.as_ref(), &request).await;
        }
        Command::Admin(request) => return admin::run(&server().await?, &request).await,
        Command::Measure(request) => {
            let report = match request.subject.backend() {
                Backend::Postgres => measure_all(&server().await?, &request).await?,
                Backend::Sqlite => measure_all(&Files::new()?, &request).await?,
            };
            print!("{report}");
            if request.strict && report.missed() {
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The server must be private: its log is filled, checkpoints are forced, databases come and go. Others are refused.
async fn server() -> Result<Server> {
    let url = std::env::var(SERVER)
        .with_context(|| format!("{SERVER} must name a private server; cargo xtask bench does"))?;
    let server = Server::connect(&url).await?;
    server.settle().await?;
    Ok(server)
}

async fn measure_all<'a>(place: &impl Place, request: &'a Request) -> Result<Report<'a>> {
    let steps = request.figures.iter().map(|figure| figure.steps(request.subject.backend(), request.rounds));
    let progress = Progress::new(steps.sum());
    let mut report = Report::new(request);
    for &figure in &request.figures {
        for row in place.measure(figure, request, &progress).await.with_context(|| figure.name())? {
            report.add(row);
        }
    }
    progress.finish();
    Ok(report)
}
