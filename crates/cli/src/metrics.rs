//! The one recorder of the process, and showing what it has gathered.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use metrics_util::MetricKindMask;
use orchestrix_server::Metrics;
use orchestrix_store::metrics::{ALL, Kind, describe};
use tokio::{net::TcpListener, task::AbortHandle};

use crate::failure::{Failure, say};

/// How often what histograms were told is sorted into their buckets, so that it takes no more room than a moment's worth.
const UPKEEP: Duration = Duration::from_secs(1);
/// How long a gauge is shown that nobody sets any more, as those of a leader that leads no longer.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// Begins to gather metrics, for as long as the runtime lasts.
pub(crate) fn install() -> Result<Metrics> {
    let mut builder = PrometheusBuilder::new().idle_timeout(MetricKindMask::GAUGE, Some(FORGOTTEN));
    for metric in ALL {
        if let Kind::Histogram(buckets) = metric.kind {
            builder = builder.set_buckets_for_metric(Matcher::Full(metric.name.into()), buckets)?;
        }
    }
    let handle = builder.install_recorder().context("metrics cannot be gathered")?;
    describe();
    let upkeep = handle.clone();
    tokio::spawn(async move {
        let mut interval = tokio::time::interval(UPKEEP);
        loop {
            interval.tick().await;
            upkeep.run_upkeep();
        }
    });
    Ok(Metrics::new(move || handle.render()))
}

/// A page with nothing but metrics and health; gone when this is dropped.
pub(crate) struct Page(AbortHandle);

impl Page {
    /// Gathers metrics from here on and shows them at `address`.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let cannot = |error| Failure::Unreachable(format!("cannot listen on {address} for metrics: {error}"));
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let address = listener.local_addr()?;
        let metrics = install()?;
        let serving = tokio::spawn(async move {
            if let Err(error) = orchestrix_server::serve_metrics(listener, metrics).await {
                say(&format!("error: metrics are not shown any more: {error}\n"));
            }
        });
        say(&format!("metrics on http://{address}/metrics\n"));
        if !address.ip().is_loopback() {
            say(
                "warning: whoever reaches that address reads the metrics, without a key and without TLS: listen on 127.0.0.1, or keep others away\n",
            );
        }
        Ok(Self(serving.abort_handle()))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.0.abort();
    }
}
