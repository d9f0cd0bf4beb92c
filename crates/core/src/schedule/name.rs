//! The name of a schedule.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::FieldError;

/// The name of a schedule: 1 to 128 characters of `A-Z a-z 0-9 _ . -`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ScheduleName(Arc<str>);

impl ScheduleName {
    /// The greatest length, in characters.
    pub const MAX: usize = 128;

    /// Validates a name.
    pub fn new(text: impl AsRef<str>) -> Result<Self, FieldError> {
        let text = text.as_ref();
        let length = text.chars().count();
        if length == 0 || length > Self::MAX {
            return Err(FieldError::new("name", format!("must have 1 to {} characters, has {length}", Self::MAX)));
        }
        match text.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '-')) {
            Some(bad) => Err(FieldError::new("name", format!("may hold only A-Z a-z 0-9 _ . -, not {bad:?}"))),
            None => Ok(Self(text.into())),
        }
    }

    /// Wraps a name that is known to be valid, such as one from a store.
    pub fn trusted(text: &str) -> Self {
        Self(text.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScheduleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for ScheduleName {
    type Err = FieldError;
    fn from_str(text: &str) -> Result<Self, FieldError> {
        Self::new(text)
    }
}

impl TryFrom<String> for ScheduleName {
    type Error = FieldError;
    fn try_from(text: String) -> Result<Self, FieldError> {
        Self::new(text)
    }
}

impl From<ScheduleName> for String {
    fn from(name: ScheduleName) -> Self {
        name.0.as_ref().into()
    }
}

impl AsRef<str> for ScheduleName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ScheduleName {
    fn borrow(&self) -> &str {
        &self.0
    }
}
