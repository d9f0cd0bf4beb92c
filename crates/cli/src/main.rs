//! The `orchestrix` command: reads arguments, opens a store, shows what it says.
//!
//! | module | what it owns |
//! |---|---|
//! | `arguments` | the command line, and the environment variable of every flag |
//! | `database` | from a URL to a store |
//! | `failure` | what to say when something went wrong, and with which exit code |
//! | `output` | tables, JSON, lines of JSON |
//! | `server` | the API, alone or with everything else |
//! | `jobs`, `dlq`, `queues`, `schedules`, `workers`, `nodes`, `migrate`, `completions` | one group of commands each |
//! | `doctor` | what is wrong with a database, a server or this machine, and what to do |
//! | `worker`, `builtin` | a worker, and the job types it knows |
//! | the others | what several groups share: filters, durations, views of a job, consent |
//!
//! A command first gathers a view (plain, serialisable data), then prints it. Nothing here decides anything about jobs.

mod arguments;
mod builtin;
mod completions;
mod consent;
mod database;
mod dlq;
mod doctor;
mod each;
mod failure;
mod filter;
mod fleet;
mod jobs;
mod migrate;
mod nodes;
mod output;
mod queues;
mod schedules;
mod server;
mod times;
mod view;
mod worker;
mod workers;

use std::{process::ExitCode, time::Duration};

use crate::{
    arguments::{Cli, Command},
    database::Opened,
    failure::Outcome,
    output::Output,
};

fn main() -> ExitCode {
    let cli = Cli::read();
    tracing_subscriber::fmt().with_max_level(cli.global.log).with_ansi(false).with_writer(std::io::stderr).init();
    let outcome = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let outcome = runtime.block_on(run(cli));
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
    let opened = Opened::open(&cli.global, cli.command.makes_files()).await?;
    let store = &*opened.store;
    let outcome = match cli.command {
        Command::Jobs(command) => jobs::run(command, store, &output).await,
        Command::Dlq(command) => dlq::run(command, store, &output).await,
        Command::Queues(command) => queues::run(command, store, &output).await,
        Command::Schedules(command) => schedules::run(command, store, &output).await,
        Command::Workers(command) => workers::run(command, store, &output).await,
        Command::Nodes(command) => nodes::run(command, store, &output).await,
        Command::Migrate(_)
        | Command::Completions(_)
        | Command::Doctor(_)
        | Command::Worker(_)
        | Command::Server(_)
        | Command::Dev(_) => Ok(Outcome::DONE),
    };
    opened.close().await;
    outcome
}
