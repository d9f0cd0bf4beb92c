//! What workers of any language ask and say: one file for each request.

pub(crate) mod heartbeat;
pub(crate) mod leases;
pub(crate) mod leave;
pub(crate) mod logs;
pub(crate) mod outcome;
pub(crate) mod outcomes;
pub(crate) mod progress;

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

use orchestrix_api::Code;
use orchestrix_core::{LeaseToken, WorkerName};
use orchestrix_store::WorkerInfo;

use crate::refusal::Refusal;

/// The token in a path. What is no token owns nothing.
pub(crate) fn token(text: &str) -> Result<LeaseToken, Refusal> {
    text.parse().map_err(|_| Refusal::new(Code::LeaseLost, "the token owns no job"))
}

/// What workers last said of themselves here, so that only news are written down.
#[derive(Default)]
pub(crate) struct Roster(Mutex<HashMap<WorkerName, u64>>, tokio::sync::Mutex<()>);

impl Roster {
    /// The most that are remembered; past that all are forgotten, and each is written down once more.
    const MOST: usize = 10_000;

    fn lock(&self) -> MutexGuard<'_, HashMap<WorkerName, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For whoever writes a worker down: a first heartbeat that comes beside the first request for jobs must not write over what that one
    /// says of the worker, of which it knows nothing.
    pub(crate) async fn alone(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.1.lock().await
    }

    /// Whether this is what it last said.
    pub(crate) fn has(&self, info: &WorkerInfo) -> bool {
        self.lock().get(&info.name) == Some(&Self::mark(info))
    }

    pub(crate) fn add(&self, info: &WorkerInfo) {
        let mut names = self.lock();
        if names.len() >= Self::MOST {
            names.clear();
        }
        names.insert(info.name.clone(), Self::mark(info));
    }

    pub(crate) fn remove(&self, name: &WorkerName) {
        self.lock().remove(name);
    }

    fn mark(info: &WorkerInfo) -> u64 {
        let mut hasher = DefaultHasher::new();
        info.hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests;
