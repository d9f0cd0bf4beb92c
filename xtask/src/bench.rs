//! `cargo xtask bench`: measurements on a private, durable server, or on a file beside the program that measures.

use anyhow::{Result, bail};
use orchestrix_testkit::Durability;

use crate::step::Step;
use crate::tools;

/// The environment variable in which the benchmark finds the server's URL, without a database.
const BENCH_POSTGRES: &str = "ORCHESTRIX_BENCH_POSTGRES";

/// Checkpoints come when the benchmark asks for them, and not by chance in one of two measurements that are compared.
const SETTINGS: [(&str, &str); 3] = [("max_wal_size", "16GB"), ("min_wal_size", "2GB"), ("checkpoint_timeout", "1h")];

/// Plans of statements are read back from the server's log, which is one file for that.
const LOG: [(&str, &str); 4] =
    [("logging_collector", "on"), ("log_rotation_age", "0"), ("log_rotation_size", "0"), ("log_line_prefix", "")];

/// Runs the benchmark that the arguments name.
pub(crate) fn run(arguments: Vec<String>) -> Result<()> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["http", ..] => {
            // wrk sends the requests, to the command that people run.
            tools::ensure_wrk()?;
            Step::cargo("build the server", "build --release -p orchestrix-cli").run()?;
            on_postgres(arguments, &[])
        }
        // A server and a worker are the command that people run.
        ["live", .., "--on", "sqlite"] | ["live", "--on", "sqlite", ..] => {
            Step::cargo("build the server", "build --release -p orchestrix-cli").run()?;
            on_sqlite(arguments)
        }
        ["live", ..] => {
            Step::cargo("build the server", "build --release -p orchestrix-cli").run()?;
            on_postgres(arguments, &[])
        }
        ["admin", ..] => on_postgres(arguments, &LOG),
        ["store" | "worker", "postgres", ..] | ["coordinator" | "schedules", ..] => on_postgres(arguments, &[]),
        ["store" | "worker", "sqlite", ..] => on_sqlite(arguments),
        _ => bail!(
            "there is: cargo xtask bench store|worker postgres|sqlite [ARGUMENTS], cargo xtask bench coordinator|schedules|http|admin|live [ARGUMENTS]"
        ),
    }
}

fn on_postgres(arguments: Vec<String>, more: &[(&str, &str)]) -> Result<()> {
    // Built before the server starts, so that it is measured fresh and on a quiet machine.
    build()?;
    let server = tools::start_postgres_with(Durability::Durable, &[&SETTINGS, more].concat())?;
    bench(arguments).env(BENCH_POSTGRES, server.base_url()).run()
}

fn on_sqlite(arguments: Vec<String>) -> Result<()> {
    build()?;
    bench(arguments).run()
}

fn build() -> Result<()> {
    Step::cargo("build", "build --release -p orchestrix-bench").run()
}

fn bench(arguments: Vec<String>) -> Step {
    Step::cargo("bench", "run --release -q -p orchestrix-bench --").args(arguments)
}
