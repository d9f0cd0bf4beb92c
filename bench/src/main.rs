//! Benchmarks of Orchestrix, each compared with the raw limit of the same machine in the same minute.
//!
//! Jobs per second alone say little: they depend on the disk, the processor and other load. So every figure
//! alternates with the least work that the database could do for the same jobs, by the same driver. The ratio of the
//! two is what counts. `README.md` says how to read it.
//!
//! | module | contents |
//! |---|---|
//! | `single`, `bulk`, `drain`, `drain_scenarios`, `memory`, `latency` | figures of a store |
//! | `width` | drains of many queues, types and tenants |
//! | `dependencies` | how soon dependents follow their parents |
//! | `bloat` | the size of tables under a steady flow |
//! | `worker` | figures of the worker runtime |
//! | `schedules` | the cost of schedules for the leader |
//! | `coordinator` | speed, punctuality and cost of a coordinator |
//! | `http` | the server as a process, under wrk |
//! | `admin` | lists and details over millions of jobs |
//! | `live` | live updates |
//! | `postgres`, `sqlite` | the databases, their counters, and the limits |
//! | `measure` | alternating measurements of two workloads |

mod admin;
mod arguments;
mod backend;
mod bloat;
mod bulk;
mod coordinator;
mod dependencies;
mod drain;
mod drain_scenarios;
mod figure;
mod http;
mod jobs;
mod latency;
mod layout;
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
mod width;
mod worker;

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::{
    arguments::{Command, Request},
    backend::Backend,
    measure::DatabaseHost,
    postgres::Server,
    progress::Progress,
    report::Report,
    sqlite::Files,
};

/// The environment variable with the URL of the server, without a database.
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
        Command::Bloat(request) => return bloat::run(&server().await?, &request).await,
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

/// Connects to the private server. A run fills its WAL, forces checkpoints and creates databases; other servers are
/// refused.
async fn server() -> Result<Server> {
    let url = std::env::var(SERVER)
        .with_context(|| format!("{SERVER} must name a private server; `cargo xtask bench` sets it"))?;
    let server = Server::connect(&url).await?;
    server.settle().await?;
    Ok(server)
}

async fn measure_all<'a>(host: &impl DatabaseHost, request: &'a Request) -> Result<Report<'a>> {
    let steps = request.figures.iter().map(|figure| figure.steps(request.subject.backend(), request.rounds));
    let progress = Progress::new(steps.sum());
    let mut report = Report::new(request);
    for &figure in &request.figures {
        for row in host.measure(figure, request, &progress).await.with_context(|| figure.name())? {
            report.add(row);
        }
    }
    progress.finish();
    Ok(report)
}
