//! Traces: the spans of requests and jobs for a collector, as OTLP over HTTP.
//!
//! A request belongs to the trace that its `traceparent` names. What is recorded with its jobs is the context of the request's
//! own span, so the span of an attempt, in whichever process and however it came by the job, is a child of the request's.
//! Without a collector jobs keep the context that came with the request, as it is.
//!
//! The libraries know nothing of this: they make spans and take a function that ties them to traces ([`Destination::tie`]).
//! Nothing waits for the collector. What it does not take in time is left out, with a warning; at the end it gets a moment.

#[cfg(feature = "otlp")]
mod otlp;

use anyhow::Result;
use clap::Args;
use orchestrix_server::TracePropagator;
use tokio::runtime::Handle;
use tracing_subscriber::Registry;

use crate::failure::{Failure, Outcome};

/// Takes part in what becomes of spans.
pub(crate) type Layer = Box<dyn tracing_subscriber::Layer<Registry> + Send + Sync>;

/// Where traces go.
#[derive(Debug, Args)]
pub(crate) struct Destination {
    /// Send traces to this collector: http://HOST:4318; OTEL_EXPORTER_OTLP_ENDPOINT and its like are heard too
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
}

impl Destination {
    fn is_asked_for(&self) -> bool {
        let variable = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let disabled = std::env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.eq_ignore_ascii_case("true"));
        let by_variable = variable("OTEL_EXPORTER_OTLP_ENDPOINT") || variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        !disabled && (self.otlp.as_ref().is_some_and(|url| !url.is_empty()) || by_variable)
    }

    /// What ties spans to traces, if any are sent.
    pub(crate) fn tie(&self) -> Option<TracePropagator> {
        #[cfg(feature = "otlp")]
        if self.is_asked_for() {
            return Some(otlp::tie);
        }
        None
    }
}

/// Whatever sends them.
#[derive(Default)]
pub(crate) struct Traces {
    #[cfg(feature = "otlp")]
    exporter: Option<otlp::Exporter>,
}

impl Traces {
    /// Prepares to send traces if that is asked for. What is sent is driven by `runtime`.
    pub(crate) fn begin(arguments: Option<&Destination>, runtime: &Handle) -> Result<Self> {
        let Some(arguments) = arguments.filter(|arguments| arguments.is_asked_for()) else {
            return Ok(Self::default());
        };
        #[cfg(feature = "otlp")]
        return Ok(Self { exporter: Some(otlp::Exporter::new(arguments.otlp.as_deref(), runtime)?) });
        #[cfg(not(feature = "otlp"))]
        {
            let _ = runtime;
            match &arguments.otlp {
                Some(_) => Err(Failure::Usage("--otlp: this program was built without the feature otlp".into()).into()),
                // Variables are often set for all programs of a machine.
                None => Ok(Self::default()),
            }
        }
    }

    /// What takes the spans.
    pub(crate) fn layer(&self) -> Option<Layer> {
        #[cfg(feature = "otlp")]
        return self.exporter.as_ref().map(otlp::Exporter::layer);
        #[cfg(not(feature = "otlp"))]
        None
    }

    /// Sends what is left, within a moment; nothing where the command was told to end at once.
    pub(crate) fn flush(&self, outcome: &Result<Outcome>) {
        #[cfg(feature = "otlp")]
        if let (Some(exporter), Ok(Outcome::DONE)) = (&self.exporter, outcome) {
            exporter.flush();
        }
        #[cfg(not(feature = "otlp"))]
        let _ = outcome;
    }
}

/// What is wrong with the place that traces should go to.
#[cfg(feature = "otlp")]
fn refused(why: &str) -> anyhow::Error {
    Failure::Usage(format!("--otlp, or OTEL_EXPORTER_OTLP_ENDPOINT: {why}")).into()
}
