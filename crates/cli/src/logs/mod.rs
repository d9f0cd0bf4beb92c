//! The log, on standard error: a short line for people, or one JSON object a line.
//!
//! | module | what it owns |
//! |---|---|
//! | `fields` | what spans and events say, as values |
//! | `layer` | one line for each event, with the ids of the spans around it |
//! | `line` | how a line looks |
//!
//! The spans of requests and jobs are followed at every level, so that a lone warning knows whose it is. As JSON standard
//! error is nothing but objects: what a command says to whoever looks on is one, and so is a panic.

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

use self::{layer::Lines, line::Style};
use crate::traces;

/// How to log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // No doc comments: with them every help page would be three times as long.
    #[default]
    Pretty,
    Json,
}

/// Standard error belongs to the process, and so does its format.
static FORMAT: OnceLock<Format> = OnceLock::new();

/// Begins to log, and to hand spans to whoever exports them.
pub(crate) fn begin(level: LevelFilter, format: Format, traces: Option<traces::Layer>) {
    let _ = FORMAT.set(format);
    let style = match format {
        Format::Json => Style::Json,
        Format::Pretty if io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() => Style::Coloured,
        Format::Pretty => Style::Plain,
    };
    if format == Format::Json {
        std::panic::set_hook(Box::new(|panic| {
            let text = panic.payload_as_str().unwrap_or("(no message)");
            let place = panic.location().map(tracing::field::display);
            tracing::error!(place, "panicked: {text}");
        }));
    }
    let lines = (level != LevelFilter::OFF).then(|| Lines::new(style).with_filter(of_level(level)));
    // The first in the process; there is no second.
    let _ = tracing::subscriber::set_global_default(Registry::default().with(traces).with(lines));
}

// Events up to a level, and the spans that say whose they are.
fn of_level(level: LevelFilter) -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
    let spans = level.max(LevelFilter::INFO);
    let wanted = move |metadata: &Metadata<'_>| *metadata.level() <= if metadata.is_span() { spans } else { level };
    filter_fn(wanted).with_max_level_hint(spans)
}

/// What a command says to whoever looks on, as it is written to standard error.
pub(crate) fn said(text: &str) -> String {
    if FORMAT.get() != Some(&Format::Json) {
        return text.to_owned();
    }
    let text = text.trim_end();
    let (level, text) = text.strip_prefix("error: ").map_or((Level::INFO, text), |text| (Level::ERROR, text));
    if text.is_empty() { String::new() } else { line::json(level, "orchestrix", text, &[], &[]) }
}
