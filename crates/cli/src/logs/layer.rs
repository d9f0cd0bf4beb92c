//! One line for each event, with what the spans around it say of themselves.

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

/// Writes lines to standard error.
pub(super) struct Lines {
    style: Style,
}

impl Lines {
    pub(super) const fn new(style: Style) -> Self {
        Self { style }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
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
        let mut own = Fields::default();
        event.record(&mut own);
        // From the innermost outwards: what is nearer counts.
        let mut around = Vec::new();
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<Fields>() {
                around.extend(fields.others.iter().cloned());
            }
        }
        let metadata = event.metadata();
        let line = line::render(self.style, *metadata.level(), metadata.target(), &own.message, &own.others, &around);
        // In one piece, so that lines of several threads stay apart. Nobody there to read it: nothing to be done.
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }
}
