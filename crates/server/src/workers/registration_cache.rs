//! Remembers what each worker last registered, so that only changes are written to the store.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

use orchestrix_core::{JobType, WorkerName};
use orchestrix_store::Queues;

/// A hash of what a worker registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// Hashes queues, job types and slots.
    ///
    /// Leaves out the number of jobs in a lease request, which varies from one request to the next.
    pub(crate) fn new(queues: &Queues, job_types: Option<&[JobType]>, slots: Option<u32>) -> Self {
        let mut hasher = DefaultHasher::new();
        (queues, job_types, slots).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The fingerprints of the workers registered through this server.
#[derive(Default)]
pub(crate) struct RegistrationCache {
    fingerprints: Mutex<HashMap<WorkerName, Fingerprint>>,
    write_lock: tokio::sync::Mutex<()>,
}

impl RegistrationCache {
    /// The most fingerprints to keep. At the limit the cache is cleared, and each worker is registered once more.
    const MAX: usize = 10_000;

    fn fingerprints(&self) -> MutexGuard<'_, HashMap<WorkerName, Fingerprint>> {
        self.fingerprints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serializes registrations.
    ///
    /// A first heartbeat concurrent with a first lease request must not overwrite the queues and job types of the
    /// lease request, which the heartbeat does not know.
    pub(crate) async fn write_lock(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.write_lock.lock().await
    }

    /// Whether the worker last registered with this fingerprint.
    pub(crate) fn contains(&self, name: &WorkerName, fingerprint: Fingerprint) -> bool {
        self.fingerprints().get(name) == Some(&fingerprint)
    }

    pub(crate) fn insert(&self, name: &WorkerName, fingerprint: Fingerprint) {
        let mut fingerprints = self.fingerprints();
        if fingerprints.len() >= Self::MAX {
            fingerprints.clear();
        }
        fingerprints.insert(name.clone(), fingerprint);
    }

    pub(crate) fn remove(&self, name: &WorkerName) {
        self.fingerprints().remove(name);
    }
}
