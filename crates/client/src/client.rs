//! Enqueueing jobs.

use std::{fmt, sync::Arc};

use orchestrix_core::{Invalid, JobId, NewJob};
use orchestrix_store::{Enqueued, Store, StoreError};

use crate::{Batch, Job, JobHandle, Request, Result};

/// Enqueues jobs in a store. Clones share the store.
///
/// ```
/// # use std::sync::Arc;
/// # use orchestrix_client::{Client, Job};
/// # use orchestrix_memory::MemoryStore;
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Greet { whom: String }
/// # impl Job for Greet { type Output = (); const TYPE: &'static str = "greet"; }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::new(MemoryStore::new());
/// let first = client.enqueue(Greet { whom: "Ada".into() }.request().idempotency_key("once")).await?;
/// let again = client.enqueue(Greet { whom: "Ada".into() }.request().idempotency_key("once")).await?;
/// assert!(again.is_duplicate() && again.id() == first.id());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    store: Arc<dyn Store>,
}

impl Client {
    /// Creates a client that owns its store.
    pub fn new(store: impl Store) -> Self {
        Self::shared(Arc::new(store))
    }

    /// Creates a client of a shared store.
    pub fn shared(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// The client's store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Enqueues one job, which is durable when this returns. Concurrent calls share a group commit.
    pub async fn enqueue<J: Job>(&self, request: impl Into<Request<J>>) -> Result<JobHandle<J>> {
        let enqueued = self.store.enqueue_job(request.into().build()?).await?;
        Ok(self.handle(enqueued))
    }

    /// Enqueues jobs of one type, all or none. For several types, or jobs that depend on each other, use
    /// [`batch`](Client::batch).
    pub async fn enqueue_many<J: Job, R: Into<Request<J>>>(
        &self,
        requests: impl IntoIterator<Item = R>,
    ) -> Result<Vec<JobHandle<J>>> {
        let enqueued = self.store.enqueue_jobs(build_all(requests)?).await?;
        Ok(enqueued.into_iter().map(|enqueued| self.handle(enqueued)).collect())
    }

    /// Starts a batch of jobs of any types that may depend on each other.
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::clone(&self.store))
    }

    /// The handle of an existing job. `None` if there is no such job.
    ///
    /// # Errors
    /// If the job is of another type.
    pub async fn job<J: Job>(&self, id: JobId) -> Result<Option<JobHandle<J>>> {
        match self.store.job_summary(id).await? {
            None => Ok(None),
            Some(job) if job.job_type.as_str() != J::TYPE => {
                let text = format!("job {id} is of type {}, not {}", job.job_type, J::TYPE);
                Err(StoreError::Invalid(Invalid::from(orchestrix_core::FieldError::new("jobType", text))).into())
            }
            Some(job) => Ok(Some(self.handle(Enqueued { id, state: job.state, duplicate: true }))),
        }
    }

    /// The handle of a job that the store has just enqueued.
    pub fn handle<J>(&self, enqueued: Enqueued) -> JobHandle<J> {
        JobHandle::new(Arc::clone(&self.store), enqueued)
    }
}

/// Builds every request. The errors name the position of the invalid ones.
pub(crate) fn build_all<J: Job, R: Into<Request<J>>>(
    requests: impl IntoIterator<Item = R>,
) -> Result<Vec<NewJob>, Invalid> {
    let mut errors = Vec::new();
    let mut jobs = Vec::new();
    for (i, request) in requests.into_iter().enumerate() {
        match request.into().build() {
            Ok(job) => jobs.push(job),
            Err(invalid) => errors.extend(invalid.within(&format!("jobs[{i}]")).errors),
        }
    }
    Invalid::check(errors)?;
    Ok(jobs)
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
