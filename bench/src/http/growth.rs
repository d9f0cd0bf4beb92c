//! `growth`: whether the server's memory grows with the number of requests.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{
    CONNECTIONS, FilledServer,
    workloads::JobReads,
    wrk::{Load, send},
};
use crate::{
    arguments::Request,
    backend::Backend,
    figure::Figure,
    postgres::Server,
    progress::Progress,
    report::Row,
    sample::{Spread, thousands},
};

/// Counted requests, and those before, in which buffers and pools reach their size.
const REQUESTS: usize = 1_000_000;
const WARM: usize = 200_000;
/// How long one run of wrk lasts; the next one opens new connections.
const RUN_SECONDS: usize = 10;
/// How often memory is sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);

/// Sends a mix of requests and samples the server's memory meanwhile.
pub(crate) async fn growth(host: &Server, request: &Request, progress: &Progress) -> Result<Row> {
    let name = Figure::Growth.name();
    let get = JobReads::new(CONNECTIONS, request.scale)?;
    let filled = FilledServer::prepare(host, &get).await?;
    let (warm, all) = (request.scale.of(WARM) as u64, request.scale.of(WARM + REQUESTS) as u64);
    let seconds = if request.scale.is_full() { RUN_SECONDS } else { 1 };
    let (mut sent, mut refused, mut runs) = (0, 0, 0);
    let mut bytes = Vec::new();
    while sent < all {
        let run = runs.to_string();
        let arguments = ["mix", get.ids()?, &run];
        let load = send(&filled.server, Load { connections: CONNECTIONS, seconds, arguments: &arguments });
        tokio::pin!(load);
        let result = loop {
            tokio::select! {
                result = &mut load => break result?,
                () = tokio::time::sleep(SAMPLE_INTERVAL) => {
                    if sent >= warm {
                        bytes.push(filled.server.resident()? as f64);
                    }
                }
            }
        };
        ensure!(result.broken == 0, "{} connections broke", result.broken);
        ensure!(result.requests > 0, "no request was answered");
        (sent, refused, runs) = (sent + result.requests, refused + result.refused, runs + 1);
        let held = megabytes(filled.server.resident()? as f64);
        progress.step(format!(
            "{name}, {} of {} requests, {held:.1} MB",
            thousands(sent as f64),
            thousands(all as f64)
        ));
    }
    filled.tear_down(host).await?;
    ensure!(!bytes.is_empty(), "memory was never sampled");
    let (first, last) = (bytes[0], bytes[bytes.len() - 1]);
    let spread = Spread::of(bytes.iter().map(|bytes| megabytes(*bytes)));
    let off = bytes.iter().map(|bytes| (megabytes(*bytes) - spread.median).abs() / spread.median * 100.0);
    let off = off.fold(0.0, f64::max);
    let shown = format!(
        "{off:.1} % from the median; {} MB, first {:.1}, last {:.1}",
        spread.with_decimals(1),
        megabytes(first),
        megabytes(last)
    );
    let refused = refused as f64 / sent as f64 * 100.0;
    progress.note(&format!("{name}: {shown}; {} requests, {refused:.0} % refused", thousands(sent as f64)));
    progress.done();
    Ok(Row { figure: name.into(), ours: shown, ..Row::with_target(Figure::Growth.target(Backend::Postgres), off) })
}

fn megabytes(bytes: f64) -> f64 {
    bytes / 1024.0 / 1024.0
}
