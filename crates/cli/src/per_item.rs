//! Applies an action to several items. An item that is rejected does not stop the others.

use std::fmt::Display;

use anyhow::Result;
use serde::Serialize;

use crate::{
    error::{self, ExitStatus},
    output::Output,
};

/// The results of an action on several items.
pub(crate) struct PerItem<T> {
    /// The results of the items that succeeded.
    pub(crate) succeeded: Vec<T>,
    errors: Vec<anyhow::Error>,
}

impl<T> PerItem<T> {
    /// Applies `action` to every item. `kind` names the items in error messages.
    pub(crate) async fn apply<K: Display>(kind: &str, items: &[K], action: impl AsyncFn(&K) -> Result<T>) -> Self {
        let mut results = Self { succeeded: Vec::new(), errors: Vec::new() };
        for item in items {
            match action(item).await {
                Ok(result) => results.succeeded.push(result),
                Err(error) if names(&error, item) => results.errors.push(error),
                Err(error) => results.errors.push(error.context(format!("{kind} {item}"))),
            }
        }
        results
    }

    /// Converts the successful results.
    pub(crate) fn map<V>(self, convert: impl FnMut(T) -> V) -> PerItem<V> {
        PerItem { succeeded: self.succeeded.into_iter().map(convert).collect(), errors: self.errors }
    }

    /// Puts the errors of an earlier step before its own.
    pub(crate) fn after<V>(mut self, earlier: PerItem<V>) -> Self {
        self.errors.splice(0..0, earlier.errors);
        self
    }

    /// Prints the successful results and reports the errors. The first error decides the exit code.
    pub(crate) fn print(&self, output: &Output, human: impl FnOnce(&[T]) -> String) -> Result<ExitStatus>
    where
        T: Serialize,
    {
        if !self.succeeded.is_empty() || self.errors.is_empty() {
            output.list(&self.succeeded, || human(&self.succeeded))?;
        }
        let statuses: Vec<ExitStatus> = self.errors.iter().map(error::report).collect();
        Ok(statuses.first().copied().unwrap_or(ExitStatus::SUCCESS))
    }
}

fn names(error: &anyhow::Error, item: &impl Display) -> bool {
    error.to_string().contains(&item.to_string())
}
