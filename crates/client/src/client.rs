//! Recording jobs.

use std::{fmt, sync::Arc};

use orchestrix_core::{Invalid, JobId, NewJob};
use orchestrix_store::{Enqueued, Store, StoreError};

use crate::{Batch, Job, JobHandle, Request, Result};

/// Records jobs in a store. Clones share it.
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
    /// A client of this store.
    pub fn new(store: impl Store) -> Self {
        Self::shared(Arc::new(store))
    }

    /// A client of a store that others use too.
    pub fn shared(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// The store beneath.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Records one job; it is durable when this returns. Calls that come at the same time share a commit.
    pub async fn enqueue<J: Job>(&self, request: impl Into<Request<J>>) -> Result<JobHandle<J>> {
        let enqueued = self.store.enqueue_job(request.into().build()?).await?;
        Ok(self.recorded(enqueued))
    }

    /// Records jobs of one kind, all or none, in one go. For several kinds, or jobs that wait for each other, there is
    /// [`batch`](Client::batch).
    pub async fn enqueue_many<J: Job, R: Into<Request<J>>>(
        &self,
        requests: impl IntoIterator<Item = R>,
    ) -> Result<Vec<JobHandle<J>>> {
        let enqueued = self.store.enqueue_jobs(build_all(requests)?).await?;
        Ok(enqueued.into_iter().map(|enqueued| self.recorded(enqueued)).collect())
    }

    /// Several jobs of any kinds that may wait for each other.
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::clone(&self.store))
    }

    /// The handle of a job that was recorded earlier; `None` if there is no such job.
    pub async fn job<J: Job>(&self, id: JobId) -> Result<Option<JobHandle<J>>> {
        match self.store.job_summary(id).await? {
            None => Ok(None),
            Some(job) if job.job_type.as_str() != J::TYPE => {
                let text = format!("job {id} is a {}, not a {}", job.job_type, J::TYPE);
                Err(StoreError::Invalid(Invalid::from(orchestrix_core::FieldError::new("jobType", text))).into())
            }
            Some(job) => Ok(Some(self.recorded(Enqueued { id, state: job.state, duplicate: true }))),
        }
    }

    /// A handle of what a store says it recorded.
    pub fn recorded<J>(&self, enqueued: Enqueued) -> JobHandle<J> {
        JobHandle::new(Arc::clone(&self.store), enqueued)
    }
}

/// Builds every request; fields of those that are wrong are named with their position.
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
