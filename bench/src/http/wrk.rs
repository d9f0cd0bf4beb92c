//! Runs wrk, an independent load generator.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use super::server::HttpServer;

/// A load: requests and connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load<'a> {
    pub(crate) connections: usize,
    pub(crate) seconds: usize,
    /// Arguments of the script.
    pub(crate) arguments: &'a [&'a str],
}

/// The result of a load.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LoadResult {
    /// Answered requests.
    pub(crate) requests: u64,
    /// Of those, with a status of 400 or more.
    pub(crate) refused: u64,
    /// Connections that could not be opened or broke.
    pub(crate) broken: u64,
    /// Requests that timed out.
    pub(crate) late: u64,
    pub(crate) p50_micros: u64,
    pub(crate) p99_micros: u64,
}

impl LoadResult {
    /// Successful requests.
    pub(crate) fn succeeded(self) -> u64 {
        self.requests - self.refused
    }
}

/// Sends requests for a fixed time.
pub(crate) async fn send(server: &HttpServer, load: Load<'_>) -> Result<LoadResult> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/load.lua");
    let output = Command::new("wrk")
        .args(["-t", "2", "-c", &load.connections.to_string(), "-d", &format!("{}s", load.seconds)])
        .args(["--timeout", "10s", "-s"])
        .arg(script)
        .arg(format!("http://{}", server.address()))
        .arg("--")
        .args(load.arguments)
        .args(server.key().map(|key| format!("key={key}")))
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot run wrk; `cargo xtask bench` installs it")?;
    let output_text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "wrk failed: {output_text}{}", String::from_utf8_lossy(&output.stderr));
    output_text.lines().find_map(parse).with_context(|| format!("wrk printed no result: {output_text}"))
}

// Parses the line that the script prints.
fn parse(line: &str) -> Option<LoadResult> {
    let line = line.strip_prefix("load: ")?;
    let numbers: Vec<u64> =
        line.split(|c: char| !c.is_ascii_digit() && c != 'p').filter_map(|number| number.parse().ok()).collect();
    let [requests, _, refused, connect, read, write, late, p50_micros, p99_micros] = numbers[..] else { return None };
    Some(LoadResult { requests, refused, broken: connect + read + write, late, p50_micros, p99_micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_the_script_is_parsed() {
        let line = "load: 1200 requests, 1000000 microseconds, 200 refused, 1 connect, 2 read, 3 write, 4 timeout, p50 500, p99 9000";
        let result = parse(line).unwrap();
        assert_eq!((result.succeeded(), result.broken, result.late), (1000, 6, 4));
        assert_eq!((result.p50_micros, result.p99_micros), (500, 9000));
        assert!(parse("Running 1s test").is_none());
    }
}
