//! The fields of spans and events.

use std::{error::Error, fmt};

use serde_json::Value;
use tracing::field::{Field, Visit};

/// The longest text of one field; longer texts are truncated.
const MAX_TEXT: usize = 16 * 1024;

/// Fields in the order in which they were recorded, and the message.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) message: String,
    pub(super) others: Vec<(&'static str, Value)>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => match self.others.iter_mut().find(|(existing, _)| *existing == name) {
                Some((_, old)) => *old = value,
                None => self.others.push((name, value)),
            },
        }
    }

    fn put_text(&mut self, field: &Field, mut text: String) {
        if text.len() > MAX_TEXT {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            text.push('…');
        }
        self.put(field, Value::String(text));
    }
}

// Fields for the trace exporter, which repeat what other fields say.
fn is_otel_field(field: &Field) -> bool {
    field.name().starts_with("otel.")
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if !is_otel_field(field) {
            self.put_text(field, value.to_owned());
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put_text(field, value.to_string());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if !is_otel_field(field) {
            self.put_text(field, format!("{value:?}"));
        }
    }
}
