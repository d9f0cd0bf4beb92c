//! Batches: several jobs that may depend on each other, enqueued all or nothing.

use std::{fmt, marker::PhantomData, sync::Arc};

use orchestrix_core::{DependsOn, Invalid, NewJob};
use orchestrix_store::{Enqueued, Store};

use crate::{Job, JobHandle, Request, Result};

/// Jobs of any types that are enqueued together. Created by [`Client::batch`](crate::Client::batch).
pub struct Batch {
    store: Arc<dyn Store>,
    /// Part of every reference, so that an entry of another batch is not mistaken for one of this.
    id: u64,
    jobs: Vec<NewJob>,
    invalid: Vec<Invalid>,
}

/// One job of a batch. Other jobs of the batch can depend on it.
#[derive(Debug)]
pub struct BatchEntry<J> {
    batch: u64,
    position: usize,
    kind: PhantomData<fn() -> J>,
}

/// A batch that has been enqueued.
pub struct EnqueuedBatch {
    store: Arc<dyn Store>,
    id: u64,
    jobs: Vec<Enqueued>,
}

fn reference(batch: u64, position: usize) -> String {
    format!("{batch:016x}-{position}")
}

impl Batch {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, id: rand::random(), jobs: Vec::new(), invalid: Vec::new() }
    }

    /// Adds a job. Nothing is enqueued yet.
    pub fn add<J: Job>(&mut self, request: impl Into<Request<J>>) -> BatchEntry<J> {
        let position = self.jobs.len() + self.invalid.len();
        match request.into().reference(reference(self.id, position)).build() {
            Ok(job) => self.jobs.push(job),
            Err(invalid) => self.invalid.push(invalid.within(&format!("jobs[{position}]"))),
        }
        BatchEntry { batch: self.id, position, kind: PhantomData }
    }

    /// The number of jobs in the batch.
    pub fn len(&self) -> usize {
        self.jobs.len() + self.invalid.len()
    }

    /// Whether the batch has no jobs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Enqueues all jobs or none.
    pub async fn enqueue(self) -> Result<EnqueuedBatch> {
        Invalid::check(self.invalid.into_iter().flat_map(|invalid| invalid.errors).collect())?;
        let jobs = self.store.enqueue_jobs(self.jobs).await?;
        Ok(EnqueuedBatch { store: self.store, id: self.id, jobs })
    }
}

impl EnqueuedBatch {
    /// The handle of the job that was added as `entry`.
    ///
    /// # Panics
    /// If the entry belongs to another batch.
    pub fn handle<J>(&self, entry: &BatchEntry<J>) -> JobHandle<J> {
        assert_eq!(self.id, entry.batch, "the entry belongs to another batch");
        JobHandle::new(Arc::clone(&self.store), self.jobs[entry.position])
    }

    /// All jobs, in the order in which they were added.
    pub fn jobs(&self) -> &[Enqueued] {
        &self.jobs
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("jobs", &self.jobs).field("invalid", &self.invalid).finish_non_exhaustive()
    }
}

impl fmt::Debug for EnqueuedBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EnqueuedBatch").field(&self.jobs).finish()
    }
}

impl<J> From<&BatchEntry<J>> for DependsOn {
    fn from(entry: &BatchEntry<J>) -> Self {
        Self::Reference(reference(entry.batch, entry.position))
    }
}
