//! `cargo xtask bench`: measures on a private, durable server, or on a file in the target directory.

use anyhow::{Result, bail};
use orchestrix_testkit::Durability;

use crate::step::Step;
use crate::tools;

/// The environment variable with the server's URL, without a database.
const BENCH_POSTGRES: &str = "ORCHESTRIX_BENCH_POSTGRES";

/// Checkpoints happen when the benchmark requests them, not at random in one of two compared measurements.
const SETTINGS: [(&str, &str); 3] = [("max_wal_size", "16GB"), ("min_wal_size", "2GB"), ("checkpoint_timeout", "1h")];

/// A long flow has checkpoints, as in use, but not one every few seconds.
const FLOW_SETTINGS: [(&str, &str); 1] = [("max_wal_size", "4GB")];

/// The plans of statements are read from the server's log, so it is one file.
const LOG: [(&str, &str); 4] =
    [("logging_collector", "on"), ("log_rotation_age", "0"), ("log_rotation_size", "0"), ("log_line_prefix", "")];

/// Runs the benchmark that the arguments name.
pub(crate) fn run(arguments: Vec<String>) -> Result<()> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["http", ..] => {
            // wrk sends requests to the release build of the command.
            tools::ensure_wrk()?;
            Step::cargo("build the server", "build --release -p orchestrix-cli").run()?;
            on_postgres(arguments, &SETTINGS)
        }
        // Server and worker are the release build of the command.
        ["live", .., "--on", "sqlite"] | ["live", "--on", "sqlite", ..] => {
            Step::cargo("build the server", "build --release -p orchestrix-cli").run()?;
            on_sqlite(arguments)
        }
        ["live", ..] => {
            Step::cargo("build the server", "build --release -p orchestrix-cli").run()?;
            on_postgres(arguments, &SETTINGS)
        }
        ["admin", ..] => on_postgres(arguments, &[&SETTINGS[..], &LOG].concat()),
        ["bloat", "postgres", ..] => on_postgres(arguments, &FLOW_SETTINGS),
        ["store" | "width" | "dependencies" | "worker", "postgres", ..] | ["coordinator" | "schedules", ..] => {
            on_postgres(arguments, &SETTINGS)
        }
        ["store" | "width" | "dependencies" | "worker", "sqlite", ..] => on_sqlite(arguments),
        _ => bail!(
            "usage: cargo xtask bench store|width|dependencies|worker postgres|sqlite [ARGUMENTS], \
             cargo xtask bench bloat postgres [ARGUMENTS], \
             or cargo xtask bench coordinator|schedules|http|admin|live [ARGUMENTS]"
        ),
    }
}

fn on_postgres(arguments: Vec<String>, settings: &[(&str, &str)]) -> Result<()> {
    // Build before the server starts, so that the machine is idle during the measurement.
    build()?;
    let server = tools::start_postgres_with(Durability::Durable, settings)?;
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
