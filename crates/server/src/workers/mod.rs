//! What workers of any language ask and say: one file for each request.

pub(crate) mod heartbeat;
pub(crate) mod leases;
pub(crate) mod leave;
pub(crate) mod logs;
pub(crate) mod outcome;
pub(crate) mod outcomes;
pub(crate) mod progress;

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use orchestrix_api::Code;
use orchestrix_core::{LeaseToken, WorkerName};

use crate::refusal::Refusal;

/// The token in a path. What is no token owns nothing.
pub(crate) fn token(text: &str) -> Result<LeaseToken, Refusal> {
    text.parse().map_err(|_| Refusal::new(Code::LeaseLost, "the token owns no job"))
}

/// Workers that showed themselves before they said what they serve.
#[derive(Default)]
pub(crate) struct Vague(Mutex<HashSet<WorkerName>>);

impl Vague {
    /// The most that are remembered; whoever is not keeps a vague entry in the list of workers.
    const MOST: usize = 10_000;

    fn lock(&self) -> MutexGuard<'_, HashSet<WorkerName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, name: WorkerName) {
        let mut names = self.lock();
        if names.len() < Self::MOST {
            names.insert(name);
        }
    }

    fn remove(&self, name: &WorkerName) -> bool {
        self.lock().remove(name)
    }
}
