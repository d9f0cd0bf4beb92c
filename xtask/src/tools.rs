//! What the commands need beside Rust itself: found, installed, or named.

use std::process::Command;

use anyhow::{Result, bail};
use orchestrix_testkit::install::{self, Server};
use orchestrix_testkit::{Durability, PostgresInstallation, PostgresServer};

use crate::step::{self, Step};

/// Makes sure of `cargo nextest`.
pub(crate) fn ensure_nextest() -> Result<()> {
    if step::succeeds("nextest --version") {
        return Ok(());
    }
    Step::cargo("install cargo-nextest", "install cargo-nextest --locked").run()
}

/// Makes sure of a component of the toolchain such as `clippy`, by the cargo command that it brings.
pub(crate) fn ensure_component(component: &str, command: &str) -> Result<()> {
    if step::succeeds(&format!("{command} --version")) {
        return Ok(());
    }
    println!("\n==> install {component}: rustup component add {component}");
    match Command::new("rustup").args(["component", "add", component]).status() {
        Ok(status) if status.success() => Ok(()),
        _ => bail!("{component} is missing and rustup cannot add it: install it with the Rust toolchain that you use"),
    }
}

/// Makes sure of PgBouncer, which tests of the store put in front of their server.
pub(crate) fn ensure_pgbouncer() -> Result<()> {
    install::ensure(Server::PgBouncer, || {
        println!("\n==> install pgbouncer: apt-get update, apt-get install pgbouncer");
    })?;
    Ok(())
}

/// Makes sure of schemathesis, by which the server is held to its description.
pub(crate) fn ensure_schemathesis() -> Result<()> {
    orchestrix_testkit::ensure_schemathesis(|| {
        println!("\n==> install schemathesis: python3 -m venv target/schemathesis, pip install");
    })?;
    Ok(())
}

/// Makes sure of Chromium, in which pages follow jobs. Before the tests, whose time is limited.
pub(crate) fn ensure_chromium() -> Result<()> {
    install::ensure_program("chromium", "apt-get update && apt-get install -y chromium", || {
        println!("\n==> install chromium: apt-get update, apt-get install chromium");
    })?;
    Ok(())
}

/// Makes sure of wrk, which sends requests for the benchmark of the server.
pub(crate) fn ensure_wrk() -> Result<()> {
    install::ensure_program("wrk", "apt-get update && apt-get install -y wrk", || {
        println!("\n==> install wrk: apt-get update, apt-get install wrk");
    })?;
    Ok(())
}

/// Starts a private PostgreSQL, installing its package first if it is missing.
pub(crate) fn start_postgres(durability: Durability) -> Result<PostgresServer> {
    start_postgres_with(durability, &[])
}

/// The same with settings, as in `postgresql.conf`.
pub(crate) fn start_postgres_with(durability: Durability, settings: &[(&str, &str)]) -> Result<PostgresServer> {
    install::ensure(Server::Postgres, || {
        println!("\n==> install postgresql: apt-get update, apt-get install postgresql");
    })?;
    let builder = PostgresServer::builder().durability(durability);
    let server = settings.iter().fold(builder, |builder, (name, value)| builder.setting(name, value)).start()?;
    let version = PostgresInstallation::find()?.major();
    println!("==> PostgreSQL {version}, {durability:?}: {}", server.base_url());
    Ok(server)
}
