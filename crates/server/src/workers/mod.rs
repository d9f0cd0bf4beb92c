//! What workers of any language ask and say: one file for each request.

pub(crate) mod heartbeat;
pub(crate) mod leases;
pub(crate) mod leave;
pub(crate) mod logs;
pub(crate) mod outcome;
pub(crate) mod outcomes;
pub(crate) mod progress;
pub(crate) mod register;

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

use orchestrix_api::Code;
use orchestrix_core::{JobType, LeaseToken, WorkerName};
use orchestrix_store::Queues;

use crate::api_error::ApiError;

/// The token in a path. What is no token owns nothing.
pub(crate) fn token(text: &str) -> Result<LeaseToken, ApiError> {
    text.parse().map_err(|_| ApiError::new(Code::LeaseLost, "the token owns no job"))
}

/// What a worker said of itself, as a number that tells it from anything else it may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Said(u64);

impl Said {
    /// Of these queues and types, and of so many jobs at once, if it says how many: what it asks for varies from one request to the next.
    pub(crate) fn of(queues: &Queues, job_types: Option<&[JobType]>, slots: Option<u32>) -> Self {
        let mut hasher = DefaultHasher::new();
        (queues, job_types, slots).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// What workers last said of themselves here, so that only news are written down.
#[derive(Default)]
pub(crate) struct Roster(Mutex<HashMap<WorkerName, Said>>, tokio::sync::Mutex<()>);

impl Roster {
    /// The most that are remembered; past that all are forgotten, and each is written down once more.
    const MOST: usize = 10_000;

    fn lock(&self) -> MutexGuard<'_, HashMap<WorkerName, Said>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For whoever writes a worker down: a first heartbeat that comes beside the first request for jobs must not write over what that one
    /// says of the worker, of which it knows nothing.
    pub(crate) async fn alone(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.1.lock().await
    }

    /// Whether this is what it last said.
    pub(crate) fn has(&self, name: &WorkerName, said: Said) -> bool {
        self.lock().get(name) == Some(&said)
    }

    pub(crate) fn add(&self, name: &WorkerName, said: Said) {
        let mut names = self.lock();
        if names.len() >= Self::MOST {
            names.clear();
        }
        names.insert(name.clone(), said);
    }

    pub(crate) fn remove(&self, name: &WorkerName) {
        self.lock().remove(name);
    }
}

#[cfg(test)]
mod tests;
