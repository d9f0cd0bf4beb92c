//! Validation errors: every bad field of a request at once, each by name.

use std::fmt;

/// A refused field of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field as the API spells it, such as `maxAttempts` or `jobs[3].queue`.
    pub field: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl FieldError {
    /// An error about `field`.
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

/// A request that breaks a rule. Nothing of it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Every refused field. Never empty.
    pub errors: Vec<FieldError>,
}

impl Invalid {
    /// Turns collected errors into a result: `Ok` if there are none.
    pub fn check(errors: Vec<FieldError>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self { errors }) }
    }

    /// The same errors with `prefix` before each field, for a job within a batch.
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
