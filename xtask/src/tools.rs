//! Tools that the commands need besides Rust: found, installed, or named in an error.

use std::process::Command;

use anyhow::{Result, bail};
use orchestrix_testkit::install::{self, ServerPackage};
use orchestrix_testkit::{Durability, PostgresInstallation, PostgresServer};

use crate::step::{self, Step};

/// Ensures that `cargo nextest` is installed.
pub(crate) fn ensure_nextest() -> Result<()> {
    if step::succeeds("nextest --version") {
        return Ok(());
    }
    Step::cargo("install cargo-nextest", "install cargo-nextest --locked").run()
}

/// Ensures that a toolchain component such as `clippy` is installed, by probing its cargo command.
pub(crate) fn ensure_component(component: &str, command: &str) -> Result<()> {
    if step::succeeds(&format!("{command} --version")) {
        return Ok(());
    }
    println!("\n==> install {component}: rustup component add {component}");
    match Command::new("rustup").args(["component", "add", component]).status() {
        Ok(status) if status.success() => Ok(()),
        _ => bail!("{component} is missing and rustup cannot add it: install it for your Rust toolchain"),
    }
}

/// Ensures that PgBouncer is installed, for the store tests behind a pooler.
pub(crate) fn ensure_pgbouncer() -> Result<()> {
    install::ensure(ServerPackage::PgBouncer, || {
        println!("\n==> install pgbouncer: apt-get update, apt-get install pgbouncer");
    })?;
    Ok(())
}

/// Ensures that schemathesis is installed, for the contract tests of the server.
pub(crate) fn ensure_schemathesis() -> Result<()> {
    orchestrix_testkit::ensure_schemathesis(|| {
        println!("\n==> install schemathesis: python3 -m venv target/schemathesis, pip install");
    })?;
    Ok(())
}

/// Ensures that Chromium is installed, for the browser tests; before the tests, whose time is limited.
pub(crate) fn ensure_chromium() -> Result<()> {
    install::ensure_program("chromium", "apt-get update && apt-get install -y chromium", || {
        println!("\n==> install chromium: apt-get update, apt-get install chromium");
    })?;
    Ok(())
}

/// Ensures that wrk is installed, the load generator of the HTTP benchmark.
pub(crate) fn ensure_wrk() -> Result<()> {
    install::ensure_program("wrk", "apt-get update && apt-get install -y wrk", || {
        println!("\n==> install wrk: apt-get update, apt-get install wrk");
    })?;
    Ok(())
}

/// Starts a private PostgreSQL; installs its package first if it is missing.
pub(crate) fn start_postgres(durability: Durability) -> Result<PostgresServer> {
    start_postgres_with(durability, &[])
}

/// The same with settings, as in `postgresql.conf`.
pub(crate) fn start_postgres_with(durability: Durability, settings: &[(&str, &str)]) -> Result<PostgresServer> {
    install::ensure(ServerPackage::Postgres, || {
        println!("\n==> install postgresql: apt-get update, apt-get install postgresql");
    })?;
    let builder = PostgresServer::builder().durability(durability);
    let server = settings.iter().fold(builder, |builder, (name, value)| builder.setting(name, value)).start()?;
    let version = PostgresInstallation::find()?.major();
    println!("==> PostgreSQL {version}, {durability:?}: {}", server.base_url());
    Ok(server)
}
