//! `growth`: whether the server's memory grows with the number of requests.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{
    CONNECTIONS, Ground,
    sides::Get,
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
const STRETCH: usize = 10;
/// How often memory is sampled.
const LOOK: Duration = Duration::from_millis(250);

/// Sends a mix of requests and samples the server's memory meanwhile.
pub(crate) async fn growth(place: &Server, request: &Request, progress: &Progress) -> Result<Row> {
    let name = Figure::Growth.name();
    let get = Get::new(CONNECTIONS, request.scale)?;
    let ground = Ground::prepare(place, &get).await?;
    let (warm, all) = (request.scale.of(WARM) as u64, request.scale.of(WARM + REQUESTS) as u64);
    let seconds = if request.scale.is_full() { STRETCH } else { 1 };
    let (mut sent, mut refused, mut stretches) = (0, 0, 0);
    let mut bytes = Vec::new();
    while sent < all {
        let run = stretches.to_string();
        let arguments = ["mix", get.ids()?, &run];
        let load = send(&ground.server, Load { connections: CONNECTIONS, seconds, arguments: &arguments });
        tokio::pin!(load);
        let told = loop {
            tokio::select! {
                told = &mut load => break told?,
                () = tokio::time::sleep(LOOK) => {
                    if sent >= warm {
                        bytes.push(ground.server.resident()? as f64);
                    }
                }
            }
        };
        ensure!(told.broken == 0, "{} connections broke", told.broken);
        ensure!(told.requests > 0, "nothing is answered");
        (sent, refused, stretches) = (sent + told.requests, refused + told.refused, stretches + 1);
        let held = megabytes(ground.server.resident()? as f64);
        progress.step(format!(
            "{name}, {} of {} requests, {held:.1} MB",
            thousands(sent as f64),
            thousands(all as f64)
        ));
    }
    ground.clear(place).await?;
    ensure!(!bytes.is_empty(), "memory was never looked at");
    let (first, last) = (bytes[0], bytes[bytes.len() - 1]);
    let spread = Spread::of(bytes.iter().map(|bytes| megabytes(*bytes)));
    let off = bytes.iter().map(|bytes| (megabytes(*bytes) - spread.median).abs() / spread.median * 100.0);
    let off = off.fold(0.0, f64::max);
    let shown = format!(
        "{off:.1} % off; {} MB, first {:.1}, last {:.1}",
        spread.with_decimals(1),
        megabytes(first),
        megabytes(last)
    );
    let refused = refused as f64 / sent as f64 * 100.0;
    progress.note(&format!("{name}: {shown}; {} requests, {refused:.0} % refused", thousands(sent as f64)));
    progress.done();
    Ok(Row { figure: name.into(), ours: shown, ..Row::judged(Figure::Growth.target(Backend::Postgres), off) })
}

fn megabytes(bytes: f64) -> f64 {
    bytes / 1024.0 / 1024.0
}
