//! Writes the query plans behind each page, as executed.
//!
//! `auto_explain` writes them to the server's log, and this module reads the part between two marks. So it needs no
//! list of statements, and each plan shows its real parameters.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use orchestrix_server::InProcessApi;
use tokio_postgres::Client;

use super::{pages, placeholders::Placeholders, request::get};
use crate::{backend, measure::Database, progress::Progress};

/// The last of these requests is recorded: PostgreSQL considers a generic plan after five custom ones.
const REQUESTS_PER_PLAN: usize = 7;
/// How long to wait for a mark in the log.
const TIMEOUT: Duration = Duration::from_secs(10);

const SETTINGS: [(&str, &str); 4] = [
    ("session_preload_libraries", "auto_explain"),
    ("auto_explain.log_min_duration", "0"),
    ("auto_explain.log_analyze", "on"),
    ("auto_explain.log_buffers", "on"),
];

/// Writes one file per page into the directory.
pub(super) async fn write(
    directory: &Path,
    client: &Client,
    database: &Database,
    placeholders: &Placeholders,
    progress: &Progress,
) -> Result<()> {
    let log: Option<String> = client.query_one("SELECT pg_current_logfile()", &[]).await?.get(0);
    ensure!(log.is_some(), "the server needs logging_collector = on; `cargo xtask bench` sets it");
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    for (name, value) in SETTINGS {
        client.batch_execute(&format!("ALTER DATABASE {} SET {name} = '{value}'", database.name)).await?;
    }
    // New connections log their plans.
    let local = InProcessApi::new(backend::open(&database.url).await?, "local:bench");
    for (n, page) in pages::ALL.iter().enumerate() {
        progress.step(format!("plans of {}", page.path));
        let path = placeholders.fill(page.path);
        for _ in 1..REQUESTS_PER_PLAN {
            get(&local, &path, page.status).await?;
        }
        let from = mark(client, &format!("before {n}")).await?;
        get(&local, &path, page.status).await?;
        let to = mark(client, &format!("after {n}")).await?;
        let text: String =
            client.query_one("SELECT pg_read_file(pg_current_logfile(), $1, $2)", &[&from, &(to - from)]).await?.get(0);
        let name: String = page.path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let file = directory.join(format!("{n:03}{name}.txt"));
        std::fs::write(&file, format!("GET {path}\n\n{text}")).with_context(|| file.display().to_string())?;
        progress.done();
    }
    Ok(())
}

/// Writes a line to the server's log and waits until it appears; returns the size of the log. Earlier log lines come
/// before it.
async fn mark(client: &Client, what: &str) -> Result<i64> {
    let line = format!("mark: {what}.");
    client.batch_execute(&format!("DO $$ BEGIN RAISE LOG '{line}'; END $$")).await?;
    let clock = Instant::now();
    loop {
        let sql = "SELECT size, strpos(pg_read_file(pg_current_logfile(), greatest(size - 2000, 0), 2000), $1) > 0 FROM pg_stat_file(pg_current_logfile())";
        let row = client.query_one(sql, &[&line]).await?;
        if row.get(1) {
            return Ok(row.get(0));
        }
        ensure!(clock.elapsed() < TIMEOUT, "the mark does not appear in the log");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
