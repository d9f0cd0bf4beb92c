//! The metrics recorder of the process, and an endpoint for processes without an API.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use metrics_util::MetricKindMask;
use orchestrix_server::Metrics;
use orchestrix_store::metrics::{ALL, Kind, describe};
use tokio::{net::TcpListener, task::AbortHandle};

use crate::error::{CliError, print_stderr};

/// How often the samples of histograms are sorted into buckets, which bounds the memory they take.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);
/// How long a gauge is shown after its last update, such as the gauges of a former leader.
const GAUGE_TIMEOUT: Duration = Duration::from_secs(60);

/// Installs the recorder. It works until the runtime ends.
pub(crate) fn install() -> Result<Metrics> {
    let mut builder = PrometheusBuilder::new().idle_timeout(MetricKindMask::GAUGE, Some(GAUGE_TIMEOUT));
    for metric in ALL {
        if let Kind::Histogram(buckets) = metric.kind {
            builder = builder.set_buckets_for_metric(Matcher::Full(metric.name.into()), buckets)?;
        }
    }
    let handle = builder.install_recorder().context("cannot install the metrics recorder")?;
    describe();
    let upkeep = handle.clone();
    tokio::spawn(async move {
        let mut interval = tokio::time::interval(UPKEEP_INTERVAL);
        loop {
            interval.tick().await;
            upkeep.run_upkeep();
        }
    });
    Ok(Metrics::new(move || handle.render()))
}

/// An HTTP endpoint with metrics and health only. Closed when dropped.
pub(crate) struct MetricsEndpoint(AbortHandle);

impl MetricsEndpoint {
    /// Installs the recorder and serves its metrics at `address`.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let cannot = |error| CliError::Unreachable(format!("cannot listen on {address} for metrics: {error}"));
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let address = listener.local_addr()?;
        let metrics = install()?;
        let server = tokio::spawn(async move {
            if let Err(error) = orchestrix_server::serve_metrics(listener, metrics).await {
                print_stderr(&format!("error: the metrics endpoint has stopped: {error}\n"));
            }
        });
        print_stderr(&format!("metrics on http://{address}/metrics\n"));
        if !address.ip().is_loopback() {
            print_stderr(
                "warning: anyone who reaches this address can read the metrics, without a key or TLS: \
                 listen on 127.0.0.1, or restrict access with a firewall\n",
            );
        }
        Ok(Self(server.abort_handle()))
    }
}

impl Drop for MetricsEndpoint {
    fn drop(&mut self) {
        self.0.abort();
    }
}
