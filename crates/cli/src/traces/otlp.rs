//! The only file that depends on OpenTelemetry.

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

use super::{Layer, invalid_endpoint};

/// The default time limit of an export, including retries. OTEL_EXPORTER_OTLP_TIMEOUT overrides it.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit of the last export, at exit.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Links a span to the trace of a W3C `traceparent`, or to a new trace. Returns the `traceparent` of the span.
pub(super) fn propagate(span: &Span, traceparent: Option<&str>) -> Option<String> {
    let propagator = TraceContextPropagator::new();
    if let Some(traceparent) = traceparent {
        let carrier = HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]);
        let parent = propagator.extract(&carrier);
        if parent.span().span_context().is_valid() {
            // Fails only if the span is not exported.
            let _ = span.set_parent(parent);
        }
    }
    let mut carrier = HashMap::new();
    propagator.inject_context(&span.context(), &mut carrier);
    carrier.remove("traceparent")
}

/// Batches spans, up to a limit, and sends them from its own thread.
pub(super) struct OtlpPipeline(SdkTracerProvider);

impl OtlpPipeline {
    pub(super) fn new(url: Option<&str>, runtime: &Handle) -> Result<Self> {
        for endpoint in url.map(str::to_owned).into_iter().chain(std::env::var("OTEL_EXPORTER_OTLP_ENDPOINT")) {
            check_endpoint(&endpoint)?;
        }
        let timeout = std::env::var("OTEL_EXPORTER_OTLP_TIMEOUT").ok().and_then(|text| text.parse().ok());
        let timeout = timeout.map_or(EXPORT_TIMEOUT, Duration::from_millis);
        let builder = OtlpExporter::builder().with_http().with_timeout(timeout);
        let builder = builder.with_http_client(RuntimeHttpClient::new(runtime, timeout)?);
        let builder = match url.filter(|url| !url.is_empty()) {
            Some(url) => builder.with_endpoint(format!("{}/v1/traces", url.trim_end_matches('/'))),
            // The builder reads the standard variables itself.
            None => builder,
        };
        let exporter = builder.build().map_err(|_| invalid_endpoint("is not a valid endpoint for traces"))?;
        let exporter = OutageLogger { exporter, is_failing: AtomicBool::new(false) };
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
        // Spans of requests and jobs, and their warnings and errors.
        let enabled = |metadata: &Metadata<'_>| {
            let max = if metadata.is_span() { Level::INFO } else { Level::WARN };
            *metadata.level() <= max && metadata.target().starts_with("orchestrix")
        };
        layer.with_filter(filter_fn(enabled).with_max_level_hint(Level::INFO)).boxed()
    }

    pub(super) fn flush(&self) {
        if self.0.shutdown_with_timeout(SHUTDOWN_TIMEOUT).is_err() {
            tracing::warn!("cannot send the last spans to the collector");
        }
    }
}

// Validates the endpoint at the start. The error does not show it, because it may hold a password.
fn check_endpoint(url: &str) -> Result<()> {
    match url.parse::<reqwest::Url>() {
        _ if url.is_empty() => Ok(()),
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Err(invalid_endpoint("must not contain a password: set keys in OTEL_EXPORTER_OTLP_HEADERS"))
        }
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(()),
        _ => Err(invalid_endpoint("must be a URL such as http://127.0.0.1:4318")),
    }
}

// The resource of the environment, with a service name if it has none.
fn resource() -> Resource {
    let environment = Resource::builder().build();
    let named =
        environment.iter().any(|(key, value)| key.as_str() == "service.name" && !value.as_str().starts_with("unknown"));
    let builder = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if named { builder.build() } else { builder.with_service_name("orchestrix").build() }
}

/// Logs once when exports start to fail, and once when they succeed again.
struct OutageLogger {
    exporter: OtlpExporter,
    is_failing: AtomicBool,
}

impl fmt::Debug for OutageLogger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutageLogger")
    }
}

impl SpanExporter for OutageLogger {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.exporter.export(batch).await;
        match (&result, self.is_failing.swap(result.is_err(), Ordering::Relaxed)) {
            (Err(error), false) => {
                tracing::warn!(%error, spans, "cannot send traces to the collector; dropping spans");
            }
            (Ok(()), true) => tracing::info!("sending traces again"),
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

/// An HTTP client that runs on the command's runtime, because the exporter's thread has none.
#[derive(Debug)]
struct RuntimeHttpClient {
    client: reqwest::Client,
    runtime: Handle,
}

impl RuntimeHttpClient {
    fn new(runtime: &Handle, timeout: Duration) -> Result<Self> {
        // Fails only if a provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().timeout(timeout).build()?;
        Ok(Self { client, runtime: runtime.clone() })
    }
}

#[async_trait]
impl HttpClient for RuntimeHttpClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        self.runtime.spawn(async move { client.send_bytes(request).await }).await?
    }
}
