//! The trace exporter: sends the spans of requests and jobs to a collector, as OTLP over HTTP.
//!
//! A request's span joins the trace of its `traceparent`. Its jobs store the context of that span, so the span of each
//! attempt is a child of the request's span, in any process. Without a collector, jobs store the request's
//! `traceparent` unchanged.
//!
//! The libraries do not depend on OpenTelemetry: they create spans and take a function that links them to traces
//! ([`TraceArguments::propagator`]). Nothing blocks on the collector: spans that it does not accept in time are dropped with
//! a warning.

#[cfg(feature = "otlp")]
mod otlp;

use anyhow::Result;
use clap::Args;
use orchestrix_server::TracePropagator;
use tokio::runtime::Handle;
use tracing_subscriber::Registry;

use crate::error::{CliError, ExitStatus};

/// The layer that passes spans to the exporter.
pub(crate) type Layer = Box<dyn tracing_subscriber::Layer<Registry> + Send + Sync>;

/// The flags of the trace exporter.
#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// Send traces to this OTLP collector, http://HOST:4318; the OTEL_EXPORTER_OTLP_* variables also apply
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
}

impl TraceArguments {
    fn is_enabled(&self) -> bool {
        let variable = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let disabled = std::env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.eq_ignore_ascii_case("true"));
        let by_variable = variable("OTEL_EXPORTER_OTLP_ENDPOINT") || variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        !disabled && (self.otlp.as_ref().is_some_and(|url| !url.is_empty()) || by_variable)
    }

    /// The function that links spans to traces, if traces are exported.
    pub(crate) fn propagator(&self) -> Option<TracePropagator> {
        #[cfg(feature = "otlp")]
        if self.is_enabled() {
            return Some(otlp::propagate);
        }
        None
    }
}

/// The exporter, if one is configured.
#[derive(Default)]
pub(crate) struct TraceExporter {
    #[cfg(feature = "otlp")]
    pipeline: Option<otlp::OtlpPipeline>,
}

impl TraceExporter {
    /// Starts the exporter if it is configured. It sends on `runtime`.
    pub(crate) fn start(arguments: Option<&TraceArguments>, runtime: &Handle) -> Result<Self> {
        let Some(arguments) = arguments.filter(|arguments| arguments.is_enabled()) else {
            return Ok(Self::default());
        };
        #[cfg(feature = "otlp")]
        return Ok(Self { pipeline: Some(otlp::OtlpPipeline::new(arguments.otlp.as_deref(), runtime)?) });
        #[cfg(not(feature = "otlp"))]
        {
            let _ = runtime;
            match &arguments.otlp {
                Some(_) => Err(CliError::Usage(
                    "--otlp: this program was built without the feature otlp; rebuild it with --features otlp".into(),
                )
                .into()),
                // The variables are often set for all programs of a machine, so they are not an error.
                None => Ok(Self::default()),
            }
        }
    }

    /// The layer of the exporter.
    pub(crate) fn layer(&self) -> Option<Layer> {
        #[cfg(feature = "otlp")]
        return self.pipeline.as_ref().map(otlp::OtlpPipeline::layer);
        #[cfg(not(feature = "otlp"))]
        None
    }

    /// Sends the remaining spans, unless the command failed or was interrupted.
    pub(crate) fn flush(&self, status: &Result<ExitStatus>) {
        #[cfg(feature = "otlp")]
        if let (Some(pipeline), Ok(ExitStatus::SUCCESS)) = (&self.pipeline, status) {
            pipeline.flush();
        }
        #[cfg(not(feature = "otlp"))]
        let _ = status;
    }
}

/// The error of an invalid endpoint.
#[cfg(feature = "otlp")]
fn invalid_endpoint(why: &str) -> anyhow::Error {
    CliError::Usage(format!("--otlp, or OTEL_EXPORTER_OTLP_ENDPOINT: {why}")).into()
}
