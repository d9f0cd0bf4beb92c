//! The log on standard error: text lines, or one JSON object per line.
//!
//! | module | what it owns |
//! |---|---|
//! | `fields` | the fields of spans and events |
//! | `layer` | one line for each event, with the fields of its spans |
//! | `line` | rendering a line |
//!
//! Spans of requests and jobs are recorded at every level, so that a single warning shows its request or job. In JSON
//! format all of standard error is JSON objects: also the notes of a command, and a panic.

mod fields;
mod layer;
mod line;

use std::{
    io::{self, IsTerminal},
    sync::OnceLock,
};

use clap::ValueEnum;
use tracing::{Level, Metadata};
use tracing_subscriber::{
    Layer as _, Registry,
    filter::{FilterFn, LevelFilter, filter_fn},
    layer::SubscriberExt,
};

use self::{layer::LogLineLayer, line::Style};
use crate::traces;

/// The log format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // No doc comments: clap would show them on every help page.
    #[default]
    Pretty,
    Json,
}

/// Global, because standard error belongs to the whole process.
static FORMAT: OnceLock<Format> = OnceLock::new();

/// Installs the subscriber: the log, and the layer of the trace exporter.
pub(crate) fn init(level: LevelFilter, format: Format, traces: Option<traces::Layer>) {
    let _ = FORMAT.set(format);
    let style = match format {
        Format::Json => Style::Json,
        Format::Pretty if io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() => Style::Colored,
        Format::Pretty => Style::Plain,
    };
    if format == Format::Json {
        std::panic::set_hook(Box::new(|panic| {
            let text = panic.payload_as_str().unwrap_or("(no message)");
            let location = panic.location().map(tracing::field::display);
            tracing::error!(location, "panicked: {text}");
        }));
    }
    let lines = (level != LevelFilter::OFF).then(|| LogLineLayer::new(style).with_filter(level_filter(level)));
    // Fails only if a subscriber is already installed.
    let _ = tracing::subscriber::set_global_default(Registry::default().with(traces).with(lines));
}

// Events up to a level, and all spans of requests and jobs.
fn level_filter(level: LevelFilter) -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
    let spans = level.max(LevelFilter::INFO);
    let enabled = move |metadata: &Metadata<'_>| *metadata.level() <= if metadata.is_span() { spans } else { level };
    filter_fn(enabled).with_max_level_hint(spans)
}

/// A message of a command in the format of the log.
pub(crate) fn format_message(text: &str) -> String {
    if FORMAT.get() != Some(&Format::Json) {
        return text.to_owned();
    }
    let text = text.trim_end();
    let (level, text) = text.strip_prefix("error: ").map_or((Level::INFO, text), |text| (Level::ERROR, text));
    if text.is_empty() { String::new() } else { line::json(level, "orchestrix", text, &[], &[]) }
}
