//! Several jobs at once, all or nothing, that may wait for each other.

use std::{fmt, marker::PhantomData, sync::Arc};

use orchestrix_core::{DependsOn, Invalid, NewJob};
use orchestrix_store::{Enqueued, Store};

use crate::{Job, JobHandle, Request, Result};

/// Jobs of any kinds that are recorded together. Made by [`Client::batch`](crate::Client::batch).
pub struct Batch {
    store: Arc<dyn Store>,
    /// In every reference, so that a ticket of another batch is not taken for one of this.
    id: u64,
    jobs: Vec<NewJob>,
    invalid: Vec<Invalid>,
}

/// The place of one job in its batch: others wait for it by this.
#[derive(Debug)]
pub struct Ticket<J> {
    batch: u64,
    position: usize,
    kind: PhantomData<fn() -> J>,
}

/// What was recorded of a batch.
pub struct Recorded {
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

    /// Adds a job. Nothing is recorded yet.
    pub fn add<J: Job>(&mut self, request: impl Into<Request<J>>) -> Ticket<J> {
        let position = self.jobs.len() + self.invalid.len();
        match request.into().named(reference(self.id, position)).build() {
            Ok(job) => self.jobs.push(job),
            Err(invalid) => self.invalid.push(invalid.within(&format!("jobs[{position}]"))),
        }
        Ticket { batch: self.id, position, kind: PhantomData }
    }

    /// How many jobs were added.
    pub fn len(&self) -> usize {
        self.jobs.len() + self.invalid.len()
    }

    /// Whether there is nothing to record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Records all of them or none.
    pub async fn enqueue(self) -> Result<Recorded> {
        Invalid::check(self.invalid.into_iter().flat_map(|invalid| invalid.errors).collect())?;
        let jobs = self.store.enqueue_jobs(self.jobs).await?;
        Ok(Recorded { store: self.store, id: self.id, jobs })
    }
}

impl Recorded {
    /// The job that got this ticket.
    ///
    /// # Panics
    /// If the ticket is of another batch.
    pub fn handle<J>(&self, ticket: &Ticket<J>) -> JobHandle<J> {
        assert_eq!(self.id, ticket.batch, "the ticket is of another batch");
        JobHandle::new(Arc::clone(&self.store), self.jobs[ticket.position])
    }

    /// All of them, in the order they were added.
    pub fn jobs(&self) -> &[Enqueued] {
        &self.jobs
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("jobs", &self.jobs).field("invalid", &self.invalid).finish_non_exhaustive()
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recorded").field(&self.jobs).finish()
    }
}

impl<J> From<&Ticket<J>> for DependsOn {
    fn from(ticket: &Ticket<J>) -> Self {
        Self::Reference(reference(ticket.batch, ticket.position))
    }
}
