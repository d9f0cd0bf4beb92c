//! The `orchestrix` command: parses arguments, calls the API and prints the response.
//!
//! | module | what it owns |
//! |---|---|
//! | `arguments` | the command line, and the environment variable of every flag |
//! | `configuration` | flags that are set in `orchestrix.toml` |
//! | `api` | the client of the API: of a server, or of the router in this process over a database |
//! | `database` | opening a store by its URL |
//! | `error` | error messages, advice and exit codes |
//! | `output` | tables, JSON, JSON lines |
//! | `logs`, `metrics`, `traces` | the log, the metrics recorder, the trace exporter (feature `otlp`) |
//! | `server`, `dev`, `serving` | the API alone or with everything else, until a signal |
//! | `worker` | a worker with the built-in job types |
//! | `doctor` | prints the reports of `orchestrix-doctor` |
//! | `jobs`, `dlq`, `operations`, `queues`, `schedules`, `workers` | one group of commands each |
//! | `tenants`, `nodes`, `keys`, `audit`, `stats`, `migrate`, `completions` | the same |
//! | `filter`, `times`, `listen_address`, `confirmation` | arguments that several groups share |
//! | `per_item`, `job_states`, `no_worker_hint` | actions on several items, and their output |
//!
//! A command builds a request, reads the response and prints it. The `api` crate defines what is shown; nothing here
//! decides anything about jobs.

mod api;
mod arguments;
mod audit;
mod completions;
mod configuration;
mod confirmation;
mod database;
#[cfg(test)]
mod deployment;
mod dev;
mod dlq;
mod doctor;
mod error;
mod filter;
mod job_states;
mod jobs;
mod keys;
mod listen_address;
mod logs;
mod metrics;
mod migrate;
mod no_worker_hint;
mod nodes;
mod operations;
mod output;
mod per_item;
mod queues;
mod schedules;
mod server;
mod serving;
mod stats;
mod tenants;
mod times;
mod traces;
mod worker;
mod workers;

use std::{process::ExitCode, time::Duration};

use crate::{
    api::ApiClient,
    arguments::{Cli, Command},
    error::ExitStatus,
    output::Output,
    traces::TraceExporter,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse_or_exit();
    let status = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let status = TraceExporter::start(cli.command.traces(), runtime.handle()).and_then(|traces| {
                logs::init(cli.global.log, cli.global.log_format, traces.layer());
                let status = runtime.block_on(run(cli));
                traces.flush(&status);
                status
            });
            // Tasks are dropped; a blocked thread, such as a DNS lookup, delays the exit by a second at most.
            runtime.shutdown_timeout(Duration::from_secs(1));
            status
        }
        Err(error) => Err(anyhow::Error::new(error).context("cannot start the threads of the runtime")),
    };
    let status = status.unwrap_or_else(|error| error::report(&error));
    ExitCode::from(status.code())
}

async fn run(cli: Cli) -> anyhow::Result<ExitStatus> {
    let output = Output::new(cli.global.output);
    match &cli.command {
        Command::Migrate(arguments) => return migrate::run(arguments, &cli.global, &output).await,
        Command::Completions(arguments) => return completions::run(arguments, &output),
        Command::Config(arguments) => return configuration::template::run(arguments, &output),
        Command::Doctor(arguments) => return doctor::run(arguments, &cli.global, &output).await,
        Command::Worker(arguments) => return worker::run(arguments, &cli.global).await,
        Command::Server(arguments) => return server::run(arguments, &cli.global).await,
        Command::Dev(arguments) => return dev::run(arguments, &cli.global).await,
        Command::Schedules(command) => {
            if let Some(status) = schedules::run_without_store(command, &output) {
                return status;
            }
        }
        _ => {}
    }
    let api = ApiClient::open(&cli.global, cli.command.creates_database_file()).await?;
    let status = match cli.command {
        Command::Jobs(command) => jobs::run(command, &api, &output).await,
        Command::Dlq(command) => dlq::run(command, &api, &output).await,
        Command::Queues(command) => queues::run(command, &api, &output).await,
        Command::Schedules(command) => schedules::run(command, &api, &output).await,
        Command::Workers(command) => workers::run(command, &api, &output).await,
        Command::Tenants(command) => tenants::run(command, &api, &output).await,
        Command::Keys(command) => keys::run(command, &api, &output).await,
        Command::Nodes(command) => nodes::run(command, &api, &output).await,
        Command::Operations(command) => operations::run(command, &api, &output).await,
        Command::Audit(command) => audit::run(command, &api, &output).await,
        Command::Stats(stats::Arguments {}) => stats::run(&api, &output).await,
        Command::Migrate(_)
        | Command::Completions(_)
        | Command::Config(_)
        | Command::Doctor(_)
        | Command::Worker(_)
        | Command::Server(_)
        | Command::Dev(_) => Ok(ExitStatus::SUCCESS),
    };
    api.close().await;
    status
}
