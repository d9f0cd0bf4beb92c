//! OpenTelemetry: the only file that knows it.

use std::{
    collections::HashMap,
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::Result;
use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry::{
    KeyValue,
    propagation::TextMapPropagator,
    trace::{TraceContextExt, TracerProvider},
};
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter as OtlpExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    propagation::TraceContextPropagator,
    trace::{BatchSpanProcessor, SdkTracerProvider, SpanData, SpanExporter},
};
use tokio::runtime::Handle;
use tracing::{Level, Metadata, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{Layer as _, filter::filter_fn};

use super::{Layer, refused};

/// How long one call to the collector may take, with its repeats, unless OTEL_EXPORTER_OTLP_TIMEOUT says otherwise.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the collector gets at the end.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Ties a span to the trace that a W3C context names, or to one of its own; answers with the context of the span.
pub(super) fn tie(span: &Span, traceparent: Option<&str>) -> Option<String> {
    let propagator = TraceContextPropagator::new();
    if let Some(traceparent) = traceparent {
        let carried = HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]);
        let parent = propagator.extract(&carried);
        if parent.span().span_context().is_valid() {
            // Refused only where the span is not exported at all.
            let _ = span.set_parent(parent);
        }
    }
    let mut carried = HashMap::new();
    propagator.inject_context(&span.context(), &mut carried);
    carried.remove("traceparent")
}

/// Gathers spans, up to a bound, and sends them from a thread of its own.
pub(super) struct Exporter(SdkTracerProvider);

impl Exporter {
    pub(super) fn new(url: Option<&str>, runtime: &Handle) -> Result<Self> {
        for given in url.map(str::to_owned).into_iter().chain(std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT")) {
            check(&given)?;
        }
        let patience = std::env::var("OTEL_EXPORTER_OTLP_TIMEOUT").ok().and_then(|text| text.parse().ok());
        let patience = patience.map_or(PATIENCE, Duration::from_millis);
        let builder = OtlpExporter::builder().with_http().with_timeout(patience);
        let builder = builder.with_http_client(Courier::new(runtime, patience)?);
        let builder = match url.filter(|url| !url.is_empty()) {
            Some(url) => builder.with_endpoint(format!("{}/v1/traces", url.trim_end_matches('/'))),
            // The variables of the standard are read by whoever knows it.
            None => builder,
        };
        let exporter = builder.build().map_err(|_| refused("is no place that traces can be sent to"))?;
        let exporter = Watched { exporter, away: AtomicBool::new(false) };
        let provider = SdkTracerProvider::builder()
            .with_resource(resource())
            .with_span_processor(BatchSpanProcessor::builder(exporter).build())
            .build();
        Ok(Self(provider))
    }

    pub(super) fn layer(&self) -> Layer {
        let layer = tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("orchestrix"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false);
        // Requests and jobs, and what went wrong in them.
        let wanted = |metadata: &Metadata<'_>| {
            let most = if metadata.is_span() { Level::INFO } else { Level::WARN };
            *metadata.level() <= most && metadata.target().starts_with("orchestrix")
        };
        layer.with_filter(filter_fn(wanted).with_max_level_hint(Level::INFO)).boxed()
    }

    pub(super) fn flush(&self) {
        if self.0.shutdown_with_timeout(LAST_PATIENCE).is_err() {
            tracing::warn!("the last spans could not be sent to the collector");
        }
    }
}

// Said before anything is sent, and without showing it.
fn check(url: &str) -> Result<()> {
    match url.parse::<reqwest::Url>() {
        _ if url.is_empty() => Ok(()),
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Err(refused("must hold no password: OTEL_EXPORTER_OTLP_HEADERS is for keys"))
        }
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(()),
        _ => Err(refused("must be a URL such as http://127.0.0.1:4318")),
    }
}

// What the environment says of this program, and its name where it says nothing.
fn resource() -> Resource {
    let said = Resource::builder().build();
    let named =
        said.iter().any(|(key, value)| key.as_str() == "service.name" && !value.as_str().starts_with("unknown"));
    let builder = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if named { builder.build() } else { builder.with_service_name("orchestrix").build() }
}

/// Tells once that the collector is away, and once that it is back.
struct Watched {
    exporter: OtlpExporter,
    away: AtomicBool,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl SpanExporter for Watched {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.exporter.export(batch).await;
        match (&result, self.away.swap(result.is_err(), Ordering::Relaxed)) {
            (Err(error), false) => {
                tracing::warn!(%error, spans, "traces cannot be sent; spans are left out until they can be");
            }
            (Ok(()), true) => tracing::info!("traces are sent again"),
            _ => {}
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Sends by the runtime of the command: the exporter's own thread has none.
#[derive(Debug)]
struct Courier {
    client: reqwest::Client,
    runtime: Handle,
}

impl Courier {
    fn new(runtime: &Handle, patience: Duration) -> Result<Self> {
        // An error would say that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().timeout(patience).build()?;
        Ok(Self { client, runtime: runtime.clone() })
    }
}

#[async_trait]
impl HttpClient for Courier {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        self.runtime.spawn(async move { client.send_bytes(request).await }).await?
    }
}
