//! A `tracing` layer that writes one line for each event, with the fields of its spans.

use std::io::{self, Write};

use tracing::{
    Event, Subscriber,
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

use super::{
    fields::Fields,
    line::{self, Style},
};

/// Writes log lines to standard error.
pub(super) struct LogLineLayer {
    style: Style,
}

impl LogLineLayer {
    pub(super) const fn new(style: Style) -> Self {
        Self { style }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLineLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut event_fields = Fields::default();
        event.record(&mut event_fields);
        // From the innermost span outwards; the inner value of a repeated field wins.
        let mut span_fields = Vec::new();
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<Fields>() {
                span_fields.extend(fields.others.iter().cloned());
            }
        }
        let metadata = event.metadata();
        let Fields { message, others } = &event_fields;
        let line = line::render(self.style, *metadata.level(), metadata.target(), message, others, &span_fields);
        // In one write, so that lines of several threads do not mix. Ignores a closed standard error.
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }
}
