//! JSON text that is returned exactly as it was given.

use std::{fmt, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::FieldError;

/// A JSON value as text, kept byte for byte: key order, number format and escapes survive.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Arc<str>);

impl Json {
    /// The largest payload, result or checkpoint, in bytes.
    pub const MAX_BYTES: usize = 1024 * 1024;

    /// Parses `text`, one JSON value of at most [`Json::MAX_BYTES`]. `field` names it in the error.
    pub fn parse(field: &str, text: &str) -> Result<Self, FieldError> {
        let text = text.trim_matches([' ', '\n', '\r', '\t']);
        if text.len() > Self::MAX_BYTES {
            return Err(Self::too_long(field, text.len()));
        }
        match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => Ok(Self(text.into())),
            Err(error) => Err(FieldError::new(field, format!("is not JSON: {error}"))),
        }
    }

    /// Serialises `value`.
    pub fn of<T: Serialize + ?Sized>(field: &str, value: &T) -> Result<Self, FieldError> {
        match serde_json::to_string(value) {
            Ok(text) if text.len() > Self::MAX_BYTES => Err(Self::too_long(field, text.len())),
            Ok(text) => Ok(Self(text.into())),
            Err(error) => Err(FieldError::new(field, format!("cannot be serialised as JSON: {error}"))),
        }
    }

    fn too_long(field: &str, length: usize) -> FieldError {
        FieldError::new(field, format!("is {length} bytes, over the limit of {}", Self::MAX_BYTES))
    }

    /// Wraps text that is known to be valid JSON, such as text from a store.
    pub fn trusted(text: &str) -> Self {
        Self(text.into())
    }

    /// The JSON `null`.
    pub fn null() -> Self {
        Self::trusted("null")
    }

    /// The original text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `text` is the same value, apart from key order and white space. Values with numbers beyond f64 are
    /// compared as text.
    pub fn equals_text(&self, text: &str) -> bool {
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text);
        *self.0 == *text || matches!((parse(&self.0), parse(text)), (Ok(own), Ok(other)) if own == other)
    }

    /// Deserialises the value.
    pub fn to<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(&self.0)
    }
}

impl Default for Json {
    fn default() -> Self {
        Self::null()
    }
}

// Payloads may hold secrets and may be large, so debug output shows only the length.
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.0.len())
    }
}
