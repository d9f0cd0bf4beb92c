//! What is wrong with a request: every bad field at once, each named.

use std::fmt;

/// One field of a request and why it was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field as the outside spells it, such as `maxAttempts` or `jobs[3].queue`.
    pub field: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl FieldError {
    /// Names `field` and says what is wrong with it.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for FieldError {}

/// A request that breaks a rule. Nothing of it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Every field that was refused; never empty.
    pub errors: Vec<FieldError>,
}

impl Invalid {
    /// Turns collected errors into a result: `Ok` when there are none.
    pub fn check(errors: Vec<FieldError>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self { errors }) }
    }

    /// The same errors with `prefix` before each field, for a job inside a batch.
    #[must_use]
    pub fn within(mut self, prefix: &str) -> Self {
        for error in &mut self.errors {
            error.field = format!("{prefix}.{}", error.field);
        }
        self
    }
}

impl From<FieldError> for Invalid {
    fn from(error: FieldError) -> Self {
        Self { errors: vec![error] }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            write!(f, "{}{error}", if i > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Invalid {}
