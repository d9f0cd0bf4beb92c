//! The `orchestrix` command: reads arguments, asks the API, shows what it answers.
//!
//! | module | what it owns |
//! |---|---|
//! | `arguments` | the command line, and the environment variable of every flag |
//! | `api` | asking the API, of a server or over a database in this process |
//! | `configuration` | flags that stand in a file |
//! | `database` | from a URL to a store |
//! | `failure` | what to say when something went wrong, and with which exit code |
//! | `logs` | what is logged, and how it looks |
//! | `output` | tables, JSON, lines of JSON |
//! | `server` | the API, alone or with everything else |
//! | `metrics` | the recorder of the process, and a page for what has no API |
//! | `jobs`, `dlq`, `operations`, `queues`, `schedules`, `workers`, `nodes`, `keys`, `audit`, `stats`, `migrate`, `completions` | one group of commands each |
//! | `traces` | spans for a collector, if the feature `otlp` is there |
//! | `doctor` | what is wrong with a database, a server or this machine, and what to do |
//! | `worker`, `builtin` | a worker, and the job types it knows |
//! | the others | what several groups share: filters, durations, addresses, consent, jobs one by one |
//!
//! A command builds a request, reads the answer and prints it: what is shown is shaped in the `api` crate, once for all. Nothing
//! here decides anything about jobs.

mod api;
mod arguments;
mod audit;
mod builtin;
mod completions;
mod configuration;
mod consent;
mod database;
#[cfg(test)]
mod deployment;
mod dlq;
mod doctor;
mod each;
mod failure;
mod filter;
mod handshake;
mod jobs;
mod keys;
mod listen;
mod logs;
mod metrics;
mod migrate;
mod nodes;
mod operations;
mod output;
mod queues;
mod schedules;
mod server;
mod stats;
mod times;
mod traces;
mod unserved;
mod worker;
mod workers;

use std::{process::ExitCode, time::Duration};

use crate::{
    api::Api,
    arguments::{Cli, Command},
    failure::Outcome,
    output::Output,
    traces::Traces,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::read();
    let outcome = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let outcome = Traces::begin(cli.command.traces(), runtime.handle()).and_then(|traces| {
                logs::begin(cli.global.log, cli.global.log_format, traces.layer());
                let outcome = runtime.block_on(run(cli));
                traces.flush(&outcome);
                outcome
            });
            // What still runs is dropped; a thread that blocks, as in looking up a name, keeps nobody waiting for long.
            runtime.shutdown_timeout(Duration::from_secs(1));
            outcome
        }
        Err(error) => Err(anyhow::Error::new(error).context("no threads to run on")),
    };
    let outcome = outcome.unwrap_or_else(|error| failure::report(&error));
    ExitCode::from(outcome.code())
}

async fn run(cli: Cli) -> anyhow::Result<Outcome> {
    let output = Output::new(cli.global.output);
    match &cli.command {
        Command::Migrate(arguments) => return migrate::run(arguments, &cli.global, &output).await,
        Command::Completions(arguments) => return completions::run(arguments, &output),
        Command::Config(arguments) => return configuration::template::run(arguments, &output),
        Command::Doctor(arguments) => return doctor::run(arguments, &cli.global, &output).await,
        Command::Worker(arguments) => return worker::run(arguments, &cli.global).await,
        Command::Server(arguments) => return server::server(arguments, &cli.global).await,
        Command::Dev(arguments) => return server::dev(arguments, &cli.global).await,
        Command::Schedules(command) => {
            if let Some(outcome) = schedules::run_without_store(command, &output) {
                return outcome;
            }
        }
        _ => {}
    }
    let api = Api::open(&cli.global, cli.command.makes_files()).await?;
    let outcome = match cli.command {
        Command::Jobs(command) => jobs::run(command, &api, &output).await,
        Command::Dlq(command) => dlq::run(command, &api, &output).await,
        Command::Queues(command) => queues::run(command, &api, &output).await,
        Command::Schedules(command) => schedules::run(command, &api, &output).await,
        Command::Workers(command) => workers::run(command, &api, &output).await,
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
        | Command::Dev(_) => Ok(Outcome::DONE),
    };
    api.close().await;
    outcome
}
