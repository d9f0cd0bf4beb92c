//! The resources that a job needs of its worker.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{FieldError, name::LimitKey};

/// Named amounts such as `cpu` or `memoryMiB`, in thousandths, so that half a core is exact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Resources(BTreeMap<LimitKey, u64>);

impl Resources {
    /// The most kinds of resources per job.
    pub const MAX_KINDS: usize = 16;

    /// Requires `amount` of `name`.
    pub fn set(&mut self, name: LimitKey, amount: f64) -> Result<(), FieldError> {
        if !(0.0..=1e9).contains(&amount) {
            return Err(FieldError::new(format!("resources.{name}"), "must be from 0 to 1000000000"));
        }
        // In range, so the cast is exact to the thousandth.
        self.0.insert(name, (amount * 1000.0).round() as u64);
        Ok(())
    }

    /// The amounts in thousandths, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&LimitKey, u64)> {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    /// Whether no resource is required.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn check(&self, errors: &mut Vec<FieldError>) {
        if self.0.len() > Self::MAX_KINDS {
            errors.push(FieldError::new("resources", format!("may name at most {} kinds", Self::MAX_KINDS)));
        }
    }
}
