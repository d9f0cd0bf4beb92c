//! `memory`: the peak memory of a process that drains a large backlog.

use std::fs;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::{
    arguments::Scale,
    backend::{self, Backend},
    drain::{JOBS, drain},
    figure::Figure,
    jobs::fill,
    measure::DatabaseHost,
    progress::Progress,
    report::Row,
};

const PENDING: usize = 1_000_000;

/// Fills a database, and drains part of it in a child process.
pub(crate) async fn measure<P: DatabaseHost>(host: &P, scale: Scale, progress: &Progress) -> Result<Row> {
    of_process(host, Figure::Memory, "drain-alone", scale.of(PENDING), scale.of(JOBS), progress).await
}

/// Fills a database with `pending` jobs, and runs `what` on `jobs` of them in a child process.
pub(crate) async fn of_process<P: DatabaseHost>(
    host: &P,
    figure: Figure,
    what: &str,
    pending: usize,
    jobs: usize,
    progress: &Progress,
) -> Result<Row> {
    progress.step(figure.name());
    let database = host.create_database().await?;
    let store = backend::open(&database.url).await?;
    fill(&store, pending).await?;
    drop(store);
    let jobs = jobs.to_string();
    let output = Command::new(std::env::current_exe()?).args([what, &database.url, &jobs]).output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes: u64 = String::from_utf8_lossy(&output.stdout).trim().parse()?;
    host.drop_database(database).await?;
    progress.done();
    let shown = format!("{:.1} MB", bytes as f64 / 1024.0 / 1024.0);
    progress.note(&format!("{}: {shown}", figure.name()));
    Ok(Row { figure: figure.name().into(), ours: shown, ..Row::with_target(figure.target(P::BACKEND), bytes as f64) })
}

/// The body of the child process: drains, and prints its peak memory in bytes.
pub(crate) async fn drain_alone(url: &str, jobs: usize) -> Result<()> {
    let store = backend::open(url).await?;
    drain(&store, Backend::of(url).batch(), jobs).await?;
    println!("{}", peak_bytes()?);
    Ok(())
}

pub(crate) fn peak_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("memory is read from /proc, which requires Linux")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("/proc/self/status has no VmHWM")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024)
}
