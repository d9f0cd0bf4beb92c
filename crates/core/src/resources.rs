//! What a job needs of the worker that runs it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{FieldError, name::LimitKey};

/// Named amounts (`cpu`, `memoryMiB`, any other), in thousandths so that half a core is exact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Resources(BTreeMap<LimitKey, u64>);

impl Resources {
    /// The most kinds of resource one job may name.
    pub const MAX_KINDS: usize = 16;

    /// Asks for `amount` of `name`.
    pub fn set(&mut self, name: LimitKey, amount: f64) -> Result<(), FieldError> {
        if !(0.0..=1e9).contains(&amount) {
            return Err(FieldError::new(format!("resources.{name}"), "must be from 0 to 1000000000"));
        }
        // In range, so the cast is exact to the thousandth.
        self.0.insert(name, (amount * 1000.0).round() as u64);
        Ok(())
    }

    /// The amounts by name, in thousandths.
    pub fn iter(&self) -> impl Iterator<Item = (&LimitKey, u64)> {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn check(&self, errors: &mut Vec<FieldError>) {
        if self.0.len() > Self::MAX_KINDS {
            errors.push(FieldError::new("resources", format!("may name at most {} kinds", Self::MAX_KINDS)));
        }
    }
}
